"""Credentials as issuers publish their formats, generated: what public secret scanners look for by a fixed shape.

Each format is its fixed parts and, in between, an alphabet with a length. No token is written down, so no scanner takes
this file for a leak, and none was ever issued.
"""

from __future__ import annotations

import string
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    import random

HEX: Final = "0123456789abcdef"
LOWER: Final = string.ascii_lowercase + string.digits
UPPER: Final = string.ascii_uppercase + string.digits
ALNUM: Final = string.ascii_letters + string.digits
URL: Final = ALNUM + "-_"
BASE64: Final = ALNUM + "+/"
BASE32: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
DIGITS: Final = string.digits

Part: TypeAlias = str | tuple[str, int]

_UUID: Final[tuple[Part, ...]] = ((HEX, 8), "-", (HEX, 4), "-", (HEX, 4), "-", (HEX, 4), "-", (HEX, 12))
SHAPED: Final[dict[str, tuple[Part, ...]]] = {
    "1password": ("ops_eyJ", (BASE64, 280)),
    "adobe": ("p8e-", (LOWER, 32)),
    "age": ("AGE-SECRET-KEY-1", ("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58)),
    "airtable": ("pat", (ALNUM, 14), ".", (HEX, 64)),
    "alibaba": ("LTAI", (ALNUM, 20)),
    "anthropic": ("sk-ant-api03-", (URL, 93), "AA"),
    "anthropic-admin": ("sk-ant-admin01-", (URL, 93), "AA"),
    "artifactory": ("AKCp", (ALNUM, 69)),
    "artifactory-reference": ("cmVmdGtu", (ALNUM, 56)),
    "atlassian": ("ATATT3", (URL, 186)),
    "aws": ("AKIA", (BASE32, 16)),
    "aws-session": ("ASIA", (BASE32, 16)),
    "aws-bedrock": ("ABSK", (BASE64, 110)),
    "azure-ad": ((ALNUM, 3), "8Q~", (ALNUM, 34)),
    "azure-storage": ("AccountKey=", (BASE64, 86), "=="),
    "cloudflare-ca": ("v1.0-", (HEX, 24), "-", (HEX, 146)),
    "databricks": ("dapi", (HEX, 32)),
    "digitalocean": ("dop_v1_", (HEX, 64)),
    "discord": ("M", (ALNUM, 23), ".", (URL, 6), ".", (URL, 27)),
    "doppler": ("dp.pt.", (ALNUM, 43)),
    "duffel": ("duffel_live_", (URL, 43)),
    "dynatrace": ("dt0c01.", (UPPER, 24), ".", (UPPER, 64)),
    "easypost": ("EZAK", (ALNUM, 54)),
    "facebook": ("EAAC", (ALNUM, 120)),
    "flutterwave": ("FLWSECK_TEST-", (HEX, 32), "-X"),
    "fly": ("fo1_", (URL, 43)),
    "frameio": ("fio-u-", (URL, 64)),
    "github": ("ghp_", (ALNUM, 36)),
    "github-app": ("ghs_", (ALNUM, 36)),
    "github-refresh": ("ghr_", (ALNUM, 76)),
    "github-pat": ("github_pat_", (ALNUM, 22), "_", (ALNUM, 59)),
    "gitlab": ("glpat-", (URL, 20)),
    "gitlab-ci": ("glcbt-", (HEX, 5), "_", (URL, 20)),
    "gitlab-deploy": ("gldt-", (URL, 20)),
    "gitlab-runner": ("glrt-", (URL, 20)),
    "gitlab-feed": ("glft-", (URL, 20)),
    "gitlab-oauth": ("gloas-", (URL, 64)),
    "gitlab-mail": ("glimt-", (URL, 25)),
    "gitlab-agent": ("glagent-", (URL, 50)),
    "gitlab-registration": ("GR1348941", (URL, 20)),
    "google": ("AIza", (URL, 35)),
    "google-oauth": ("GOCSPX-", (URL, 28)),
    "google-access": ("ya29.", (URL, 120)),
    "grafana-cloud": ("glc_", (BASE64, 80)),
    "grafana-service": ("glsa_", (ALNUM, 32), "_", (HEX, 8)),
    "groq": ("gsk_", (ALNUM, 52)),
    "harness": ("pat.", (ALNUM, 22), ".", (HEX, 24), ".", (ALNUM, 20)),
    "hashicorp": ((ALNUM, 14), ".atlasv1.", (URL, 64)),
    "heroku": ("HRKU-AA", (URL, 58)),
    "huggingface": ("hf_", (string.ascii_letters, 34)),
    "huggingface-org": ("api_org_", (string.ascii_letters, 34)),
    "jwt": ("eyJhbGciOiJIUzI1NiJ9.eyJ", (URL, 40), ".", (URL, 43)),
    "linear": ("lin_api_", (ALNUM, 40)),
    "mailchimp": ((HEX, 32), "-us12"),
    "mailgun": ("key-", (HEX, 32)),
    "mapbox": ("sk.eyJ", (ALNUM, 58), ".", (ALNUM, 22)),
    "maxmind": ((ALNUM, 6), "_", (ALNUM, 29), "_mmk"),
    "newrelic": ("NRAK-", (UPPER, 27)),
    "npm": ("npm_", (ALNUM, 36)),
    "nuget": ("oy2", ("abcdefghijklmnopqrstuvwxyz234567", 43)),
    "octopus": ("API-", (UPPER, 26)),
    "openai": ("sk-proj-", (URL, 74), "T3BlbkFJ", (URL, 74)),
    "openai-old": ("sk-", (ALNUM, 20), "T3BlbkFJ", (ALNUM, 20)),
    "openrouter": ("sk-or-v1-", (HEX, 64)),
    "openshift": ("sha256~", (URL, 43)),
    "perplexity": ("pplx-", (ALNUM, 48)),
    "pgp": ("-----BEGIN PGP PRIVATE KEY BLOCK-----\n", (BASE64, 400), "\n-----END PGP PRIVATE KEY BLOCK-----"),
    "plaid": ("access-production-", *_UUID),
    "planetscale": ("pscale_tkn_", (URL, 43)),
    "planetscale-password": ("pscale_pw_", (URL, 43)),
    "postman": ("PMAK-", (HEX, 24), "-", (HEX, 34)),
    "prefect": ("pnu_", (ALNUM, 36)),
    "private-key": ("-----BEGIN OPENSSH PRIVATE KEY-----\n", (BASE64, 400), "\n-----END OPENSSH PRIVATE KEY-----"),
    "pulumi": ("pul-", (HEX, 40)),
    "pypi": ("pypi-AgEIcHlwaS5vcmc", (URL, 120)),
    "readme": ("rdme_", (LOWER, 70)),
    "replicate": ("r8_", (ALNUM, 37)),
    "rubygems": ("rubygems_", (HEX, 48)),
    "scalingo": ("tk-us-", (URL, 48)),
    "sendgrid": ("SG.", (URL, 22), ".", (URL, 43)),
    "sendinblue": ("xkeysib-", (HEX, 64), "-", (ALNUM, 16)),
    "sentry": ("sntryu_", (HEX, 64)),
    "sentry-org": ("sntrys_eyJ", (BASE64, 120), "_", (BASE64, 43)),
    "shippo": ("shippo_live_", (HEX, 40)),
    "shopify": ("shpat_", (HEX, 32)),
    "shopify-secret": ("shpss_", (HEX, 32)),
    "slack": ("xoxb-", (DIGITS, 12), "-", (DIGITS, 12), "-", (ALNUM, 24)),
    "slack-app": ("xapp-1-", (UPPER, 11), "-", (DIGITS, 13), "-", (HEX, 64)),
    "slack-config": ("xoxe.xoxp-1-", (UPPER, 164)),
    "slack-hook": ("https://hooks.slack.com/services/T", (UPPER, 8), "/B", (UPPER, 8), "/", (ALNUM, 24)),
    "sourcegraph": ("sgp_", (HEX, 16), "_", (HEX, 40)),
    "square": ("sq0atp-", (URL, 22)),
    "square-secret": ("sq0csp-", (URL, 43)),
    "stripe": ("sk_live_", (ALNUM, 24)),
    "stripe-restricted": ("rk_live_", (ALNUM, 99)),
    "supabase": ("sbp_", (HEX, 40)),
    "teams-hook": (
        *("https://contoso.webhook.office.com/webhookb2/", *_UUID, "@", *_UUID, "/IncomingWebhook/"),
        *((HEX, 32), "/", *_UUID),
    ),
    "telegram": ((DIGITS, 10), ":AA", (URL, 33)),
    "twilio": ("SK", (HEX, 32)),
    "vault": ("hvs.", (URL, 95)),
    "vault-batch": ("hvb.", (URL, 140)),
    "xai": ("xai-", (ALNUM, 80)),
    "yandex": ("AQVN", (URL, 36)),
}
"""Formats with a shape of their own, by their issuer."""
LABELLED: Final[dict[str, tuple[str, tuple[Part, ...]]]] = {
    "aws-secret": ("AWS_SECRET_ACCESS_KEY", ((BASE64, 40),)),
    "algolia": ("ALGOLIA_API_KEY", ((LOWER, 32),)),
    "asana": ("ASANA_CLIENT_SECRET", ((LOWER, 32),)),
    "bitbucket": ("BITBUCKET_CLIENT_SECRET", ((URL, 64),)),
    "cloudflare": ("CLOUDFLARE_API_TOKEN", ((URL, 40),)),
    "codecov": ("CODECOV_ACCESS_TOKEN", ((LOWER, 32),)),
    "cohere": ("CO_API_KEY", ((ALNUM, 40),)),
    "confluent": ("CONFLUENT_SECRET_KEY", ((ALNUM, 64),)),
    "contentful": ("CONTENTFUL_ACCESS_TOKEN", ((URL, 43),)),
    "datadog": ("DATADOG_API_KEY", ((HEX, 32),)),
    "datadog-app": ("DATADOG_APP_KEY", ((HEX, 40),)),
    "deepseek": ("DEEPSEEK_API_KEY", ("sk-", (HEX, 32))),
    "discord-secret": ("DISCORD_CLIENT_SECRET", ((URL, 32),)),
    "droneci": ("DRONECI_ACCESS_TOKEN", ((ALNUM, 32),)),
    "etsy": ("ETSY_ACCESS_TOKEN", ((LOWER, 24),)),
    "fastly": ("FASTLY_API_TOKEN", ((URL, 32),)),
    "heroku-uuid": ("HEROKU_API_KEY", _UUID),
    "jfrog": ("JFROG_API_KEY", ((ALNUM, 73),)),
    "kraken": ("KRAKEN_SECRET_KEY", ((BASE64, 86), "==")),
    "mattermost": ("MATTERMOST_ACCESS_TOKEN", ((LOWER, 26),)),
    "mistral": ("MISTRAL_API_KEY", ((ALNUM, 32),)),
    "netlify": ("NETLIFY_AUTH_TOKEN", ((URL, 43),)),
    "okta": ("OKTA_API_TOKEN", ("00", (URL, 40))),
    "snyk": ("SNYK_TOKEN", _UUID),
    "sonar": ("SONAR_TOKEN", ((HEX, 40),)),
    "travis": ("TRAVIS_API_TOKEN", ((ALNUM, 22),)),
    "twitch": ("TWITCH_CLIENT_SECRET", ((LOWER, 30),)),
    "twitter": ("TWITTER_ACCESS_SECRET", ((ALNUM, 45),)),
}
"""Formats that only their label tells from other random text: the name of a setting, and the value."""


def made(parts: tuple[Part, ...], chance: random.Random) -> str:
    """Make a credential of a format."""
    return "".join(p if isinstance(p, str) else "".join(chance.choices(p[0], k=p[1])) for p in parts)
