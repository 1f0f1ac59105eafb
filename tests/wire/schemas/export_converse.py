"""Writes `bedrock-converse.json`: what AWS' service model says that a request to Converse is, as a JSON Schema.

Run it where ``botocore`` is installed: ``python export_converse.py > bedrock-converse.json``. Blobs are base64
texts, as in the body. What the model does not say, and the service demands all the same, is in `tests.wire.validity`.
"""

from __future__ import annotations

import json
from typing import Any

import botocore  # type: ignore[import-not-found]  # not of the tests: see above
from botocore.session import Session  # type: ignore[import-not-found]

_BOUNDS = {
    "string": {"min": "minLength", "max": "maxLength", "pattern": "pattern", "enum": "enum"},
    "list": {"min": "minItems", "max": "maxItems"},
    "integer": {"min": "minimum", "max": "maximum"},
    "float": {"min": "minimum", "max": "maximum"},
}


def schema_of(shape: Any, known: dict[str, Any]) -> dict[str, Any]:
    """Return a reference to the schema of a shape, which goes into ``known``."""
    if shape.name not in known:
        known[shape.name] = {}
        known[shape.name] = _written(shape, known)
    return {"$ref": f"#/$defs/{shape.name}"}


def _written(shape: Any, known: dict[str, Any]) -> dict[str, Any]:
    names = _BOUNDS.get(shape.type_name, {})
    bounds = {name: shape.metadata[key] for key, name in names.items() if key in shape.metadata}
    if "pattern" in bounds:
        bounds["pattern"] = f"^(?:{bounds['pattern']})$"
    match shape.type_name:
        case "structure" if shape.is_document_type:
            return {}
        case "structure":
            one = {"minProperties": 1, "maxProperties": 1} if shape.is_tagged_union else {}
            members = {name: schema_of(inner, known) for name, inner in shape.members.items()}
            closed = {"type": "object", "properties": members, "additionalProperties": False, **one}
            return {**closed, **({"required": shape.required_members} if shape.required_members else {})}
        case "list":
            return {"type": "array", "items": schema_of(shape.member, known), **bounds}
        case "map":
            return {"type": "object", "additionalProperties": schema_of(shape.value, known)}
        case "blob":
            return {"type": "string", "minLength": 1, "pattern": "^[A-Za-z0-9+/]+=*$"}
        case kind:
            return {"type": {"float": "number", "double": "number"}.get(kind, kind), **bounds}


if __name__ == "__main__":
    model = Session().get_service_model("bedrock-runtime")
    defs: dict[str, Any] = {}
    top = schema_of(model.operation_model("Converse").input_shape, defs)
    print(json.dumps({"$comment": f"botocore {botocore.__version__}", **top, "$defs": defs}))
