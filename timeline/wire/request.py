"""The request of a model call: a context in a wire's form, with the model and the parameters that the caller adds.

The log keeps neither the body nor its messages. It keeps what the recorded context lacks to build them again: model,
parameters, the number of the wire's encoder, and the body's sha256. `body_text` builds the body again to check it.

The order of a body's keys is ``model``, the parameters as they were given, then what the encoder gives, in its order.
Google's body has an order of its own, see `timeline.wire.gemini_body`; Bedrock's has no model, see
`timeline.wire.converse_body`.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from timeline.errors import InvalidArgument
from timeline.events import CallRequest
from timeline.frozen import MOST_NESTING, compact_json, is_nested_deeper, repair_json
from timeline.wire import encoded_alone, encoder, encoder_number, given_keys
from timeline.wire.body_text import BodyText, body_alone
from timeline.wire.converse_body import TOOL_CONFIG, converse_arguments, converse_body, with_bytes
from timeline.wire.foreign import object_of
from timeline.wire.gemini_body import gemini_arguments, gemini_body, is_rewritten

if TYPE_CHECKING:
    from collections.abc import Mapping

    from timeline.wire.neutral import NeutralContext

_BEDROCK: Final = "bedrock_converse"
_IN_ADDRESS: Final = frozenset({"gemini", _BEDROCK})
"""The wires whose requests have the model in their address, and take other arguments than the body."""
EXTRA_BODY: Final = "extra_body"
"""The argument of Anthropic's and OpenAI's SDKs whose keys go into the body as they are."""
_SDK_ONLY: Final = frozenset({"extra_headers", "extra_query", "timeout"})
"""Arguments of those SDKs that are no part of the body."""
_CREDENTIAL: Final = re.compile(
    r".*apikey|.*apitoken|.*authtoken|.*accesstoken|azureadtoken|bearertoken|(proxy)?authorization|(default)?headers"
    r"|clientsecret|password|.*credentials|aws(accesskey|accesskeyid|secretkey|secretaccesskey|sessiontoken)"
)
"""Names of parameters that only a client sends, in headers; they are compared in small letters and digits alone."""


@dataclass(slots=True, eq=False)
class LateRecord:
    """The record of a context that is written while the model is called: its version, None until it is written."""

    version: int | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """The complete request of a model call, frozen. `RenderedContext.request` makes one, and `record` takes it.

    Attributes:
        wire: the wire format.
        encoder: number of the wire's encoder.
        model: id of the model that it is for.
        sha256: hash of ``text``.
        conversation: the log that its context was rendered from.
        context: version of the recorded context that it was made from; None if the context was not recorded, so that
            nothing can prove the request later, or is recorded while the model is called: see ``answers``.
        by: who makes the body that is sent: we do, or a framework by itself.
    """

    wire: str
    encoder: int
    model: str
    sha256: str
    conversation: str
    context: int | None
    by: Literal["ours", "framework"]
    _body: BodyText = field(repr=False, compare=False)
    _arguments: BodyText = field(repr=False, compare=False)
    _parameters: str
    _late: LateRecord | None = field(default=None, repr=False, compare=False)

    @property
    def text(self) -> str:
        """The body as compact JSON, put together each time: a conversation's requests share what is in all of them."""
        return self._body.text

    @property
    def answers(self) -> int | None:
        """Version of the recorded context that it was made from, also of one that was recorded after it was made."""
        return self.context if self._late is None else self._late.version

    @property
    def body(self) -> dict[str, Any]:
        """The body that is sent, a new copy each time. Google's and Bedrock's have the model in their address."""
        body: dict[str, Any] = json.loads(self.text)
        return body

    @property
    def arguments(self) -> dict[str, Any]:
        """The keyword arguments of the SDK's method, a new copy each time.

        They are those of ``messages.create``, ``chat.completions.create``, ``responses.create``,
        ``models.generate_content`` and ``converse``. They are the body but for Google's and Bedrock's, and for what is
        in ``extra_body``.
        """
        arguments: dict[str, Any] = json.loads(self._arguments.text)
        return with_bytes(arguments) if self.wire == _BEDROCK else arguments

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters besides the model that the caller added, a new copy each time."""
        parameters: dict[str, Any] = json.loads(self._parameters)
        return parameters

    def by_framework(self) -> Request:
        """Return the request for a framework that encodes by itself: the body here is ours, beside the one it sends."""
        return replace(self, by="framework")

    def recorded(self) -> CallRequest:
        """Return what the log keeps of it."""
        return CallRequest(
            wire=self.wire,
            encoder=self.encoder,
            model=self.model,
            parameters=self.parameters,
            sha256=self.sha256,
            body=self.by,
        )


class BodyEncoders(Protocol):
    """Encode contexts, and write the bodies that are made of them."""

    def encode(self, wire: str, context: NeutralContext, /) -> dict[str, Any]:
        """Return what a context gives to a body in a wire format."""
        ...

    def write(self, wire: str, model: str, body: dict[str, Any], /) -> BodyText:
        """Write the body of a request for a model."""
        ...


class _Alone:
    """Encodes each context by itself, and writes each body whole."""

    def encode(self, wire: str, context: NeutralContext, /) -> dict[str, Any]:
        return encoded_alone(wire, context)

    def write(self, wire: str, model: str, body: dict[str, Any], /) -> BodyText:
        del wire, model
        return body_alone(body)


ALONE: Final[BodyEncoders] = _Alone()
"""The encoders of a context that is the first one of its conversation to be encoded."""


def is_credential(name: str) -> bool:
    """Return whether a parameter of this name is a client's credential, or holds its headers, and no part of a body."""
    return _CREDENTIAL.fullmatch(re.sub(r"[^a-z0-9]", "", name.lower())) is not None


def make_request(
    neutral: NeutralContext,
    wire: str,
    *,
    model: str,
    parameters: Mapping[str, Any],
    conversation: str,
    context: int | None,
    late: LateRecord | None = None,
    encoders: BodyEncoders = ALONE,
) -> Request:
    """Make the request of a context.

    Args:
        neutral: the context.
        wire: the wire format.
        model: id of the model that is called.
        parameters: the other keys of the body.
        conversation: the log that the context was rendered from.
        context: version of the recorded context.
        late: the record of a context that is written meanwhile.
        encoders: encode the context, and write its body.

    Raises:
        InvalidArgument: there is no such wire format.
        InvalidArgument: there is no model, or a parameter is one that the context gives, is a credential, or has no
            form in JSON.
    """
    checked = _checked(wire, model, parameters)
    encoded = encoders.encode(wire, neutral.model_copy(update={"model": model}))
    body = encoders.write(wire, model, _body(wire, model, checked, encoded))
    differ = _differ(wire, checked)
    return Request(
        wire=wire,
        encoder=encoder_number(wire),
        model=model,
        sha256=body.sha256,
        conversation=conversation,
        context=context,
        by="ours",
        _body=body,
        _arguments=body_alone(_arguments(wire, model, checked, encoded)) if differ else body,
        _parameters=compact_json(checked),
        _late=late,
    )


def body_text(neutral: NeutralContext, request: CallRequest) -> str:
    """Build the body of a recorded request again, from its context: compact JSON.

    Raises:
        InvalidArgument: this release has no such wire format.
    """
    encoded = encoder(request.wire)(neutral.model_copy(update={"model": request.model}))
    return compact_json(_body(request.wire, request.model, request.parameters, encoded))


def _body(wire: str, model: str, parameters: Mapping[str, Any], encoded: dict[str, Any]) -> dict[str, Any]:
    if wire == "gemini":
        return gemini_body(parameters, encoded)
    if wire == _BEDROCK:
        return converse_body(parameters, encoded)
    own = {key: value for key, value in parameters.items() if key != EXTRA_BODY}
    return {"model": model, **own, **_unless_own(own, encoded), **parameters.get(EXTRA_BODY, {})}


def _arguments(wire: str, model: str, parameters: Mapping[str, Any], encoded: dict[str, Any]) -> dict[str, Any]:
    if wire == "gemini":
        return gemini_arguments(model, parameters, encoded)
    if wire == _BEDROCK:
        return converse_arguments(model, parameters, encoded)
    return {"model": model, **parameters, **_unless_own(parameters, encoded)}


def _unless_own(parameters: Mapping[str, Any], encoded: dict[str, Any]) -> dict[str, Any]:
    """Return what a context gives to a body, without what the caller gives, such as a container with skills to load."""
    return {key: value for key, value in encoded.items() if key not in parameters}


def _differ(wire: str, parameters: Mapping[str, Any]) -> bool:
    """Return whether the arguments of the SDK's method differ from the body; mostly they do not, which saves a copy."""
    return wire in _IN_ADDRESS or EXTRA_BODY in parameters


def _checked(wire: str, model: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters as JSON values.

    Raises:
        InvalidArgument: there is no model, or a parameter cannot be one.
    """
    if not isinstance(model, str) or not model.strip():
        raise InvalidArgument("model", "must be the id of the model that the request is for")
    try:
        checked: dict[str, Any] = repair_json(dict(parameters))
        compact_json(checked)
    except (TypeError, ValueError) as error:
        raise InvalidArgument("parameters", f"have no form in JSON: {error}") from None
    if is_nested_deeper(checked, MOST_NESTING):
        problem = f"are nested more than {MOST_NESTING} levels deep; write the inner levels as text"
        raise InvalidArgument("parameters", problem)
    _refuse_given(wire, checked.keys())
    for name in sorted(_SDK_ONLY & checked.keys()):
        raise InvalidArgument(name, "is not a part of the body; pass it to the SDK's method beside the arguments")
    inner = "config" if wire == "gemini" else EXTRA_BODY
    if not isinstance(extra := checked.get(inner, {}), dict):
        raise InvalidArgument(inner, "must be a dict of parameters")
    _refuse_given(wire, extra.keys(), within=inner)
    _refuse_credentials(checked)
    _refuse_credentials(extra, within=inner)
    if wire == _BEDROCK:
        _refuse_given(wire, {"tools"} & object_of(checked, TOOL_CONFIG).keys(), within=TOOL_CONFIG)
    if wire == "gemini":
        _refuse_rewritten(extra)
        _refuse_merged(extra)
    if wire == "gemini" and (others := sorted(checked.keys() - {inner})):
        raise InvalidArgument(others[0], f"belongs into config={{…}}, as in the SDK: config={{{others[0]!r}: …}}")
    return checked


def _refuse_credentials(given: Mapping[str, Any], *, within: str = "") -> None:
    """Refuse what only a client sends: the log keeps parameters as they are, and every reader of the log sees them.

    Only the names of parameters are looked at. Inside of one, a schema may have a field of such a name, and a server
    that the provider calls may need a key of its own.

    Raises:
        InvalidArgument: one of the parameters is a credential, or holds headers.
    """
    for name, value in given.items():
        place = f"{within}.{name}" if within else name
        if is_credential(name):
            raise InvalidArgument(
                place, "belongs to the client; give it to the client, because the log keeps parameters"
            )
        if name in {"http_options", "httpOptions"} and isinstance(value, dict):  # Google's SDK takes them in `config`
            _refuse_credentials(value, within=place)


def _refuse_rewritten(config: Mapping[str, Any]) -> None:
    """Refuse a schema of answers that Google's SDK rewrites: it would send another one than the request has.

    Raises:
        InvalidArgument: the schema has references, constants, or a type ``null``.
    """
    for name in ("response_schema", "responseSchema"):
        if name in config and is_rewritten(config[name]):
            raise InvalidArgument(
                f"config.{name}",
                "has references, constants or a type null, which the SDK rewrites; pass it as response_json_schema, "
                "which is sent as it is",
            )


def _refuse_merged(config: Mapping[str, Any]) -> None:
    """Refuse keys that Google's SDK merges into the body by rules of its own, even over what the context gives.

    Raises:
        InvalidArgument: the options of HTTP have such keys.
    """
    for name in ("http_options", "httpOptions"):
        options = config.get(name)
        for inner in ("extra_body", "extraBody"):
            if isinstance(options, dict) and options.get(inner):
                raise InvalidArgument(
                    f"config.{name}.{inner}",
                    "is merged into the body by the SDK, so that the request would prove another body than the one "
                    "that is sent; give it to the client, and record the request as by_framework()",
                )


def _refuse_given(wire: str, names: Any, *, within: str = "") -> None:
    """Refuse parameters that the context gives: the account counts those of the context, and replay rebuilds them.

    Raises:
        InvalidArgument: one of the names is such a parameter.
    """
    for name in names:
        if name in given_keys(wire) or name in {"model", "modelId"} or within == TOOL_CONFIG:
            cure = "pass the model as model=" if name in {"model", "modelId"} else "pass it to render()"
            raise InvalidArgument(f"{within}.{name}" if within else name, f"comes from the context; {cure}")
