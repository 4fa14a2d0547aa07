"""Django settings; every value that differs between installations comes from ``config/environment.py``."""

import socket
from pathlib import Path

from csp.constants import NONE, SELF
from django.utils.translation import gettext_lazy as _

from config.environment import (
    BASE_DIR,
    HOME_DIR,
    command_settings,
    database_settings,
    mail_settings,
    oidc_settings,
    read,
    read_networks,
    refuse_unknown_names,
    second_factor_mode,
    secret_key,
    site_origins,
)

refuse_unknown_names()

VAR_DIR = Path(read("CONCORD_VAR") or HOME_DIR / "var")
DEBUG: bool = read("DEBUG")
ALLOWED_HOSTS: list[str] = read("ALLOWED_HOSTS")
# A site without host names answers on this machine only: it needs no TLS and no collected static files, and generates
# its key.
IS_LOCAL = DEBUG or not ALLOWED_HOSTS
ALLOWED_HOSTS = ALLOWED_HOSTS or ["localhost", "127.0.0.1", "[::1]"]
SECRET_KEY = secret_key(VAR_DIR, generate=IS_LOCAL)
SECRET_KEY_FALLBACKS: list[str | bytes] = read("SECRET_KEY_FALLBACKS")

INSTALLED_APPS = [
    "evaluation",
    "review",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "config.apps.BackOffice",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_filters",
    "django_htmx",
    "django_q",
    "csp",
]
# Optional features, each an app that the site works without (docs/architecture.md). Pages show their sections in this
# order.
CONTRIB_APPS = [
    "contrib.attacks",
    "contrib.batches",
    "contrib.corpora",
    "contrib.generation",
    "contrib.local_embeddings",
    "contrib.pairs",
    "contrib.retrieval_truth",
    "contrib.practice",
    "contrib.traces",
    "contrib.webhooks",
]
INSTALLED_APPS += CONTRIB_APPS

MIDDLEWARE = [
    "config.middleware.HealthMiddleware",
    "config.middleware.ProxyMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "config.middleware.NoStoreMiddleware",
    "django.middleware.http.ConditionalGetMiddleware",
    "csp.middleware.CSPMiddleware",
    "config.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "config.middleware.SealedLabelsMiddleware",
    "config.middleware.LanguageMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "config.middleware.DatabaseMiddleware",
    "config.middleware.RateLimitMiddleware",
    "config.middleware.LoginReturnMiddleware",
    "config.middleware.StripNulMiddleware",
]

ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "django.template.context_processors.i18n",
                "config.navigation.frame",
            ]
        },
    }
]

DATABASES = {"default": database_settings(VAR_DIR)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
# django-q2 writes its heartbeat to the default cache twice a second, so that one stays in memory.
CACHES = {
    "default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"},
    "shared": {
        "BACKEND": "django.core.cache.backends.db.DatabaseCache",
        "LOCATION": "evaluation_cacheentry",
        "OPTIONS": {"MAX_ENTRIES": 100_000},
    },
}

AUTH_USER_MODEL = "evaluation.User"
AUTHENTICATION_BACKENDS = ["evaluation.accounts.login.LimitedBackend"]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "login"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]

LANGUAGE_CODE: str = read("LANGUAGE_CODE")
LANGUAGES = [("en", _("English")), ("ko", _("Korean"))]
LOCALE_PATHS = [BASE_DIR / "locale"]
TIME_ZONE: str = read("TIME_ZONE")
USE_TZ = True
FORMAT_MODULE_PATH = ["config.formats"]

STATIC_URL = "static/"
STATIC_ROOT = VAR_DIR / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if IS_LOCAL
        else "whitenoise.storage.CompressedManifestStaticFilesStorage"
    },
}
WHITENOISE_USE_FINDERS = WHITENOISE_AUTOREFRESH = IS_LOCAL

SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_SSL_REDIRECT: bool = read("CONCORD_TLS_REDIRECT")
SECURE_HSTS_SECONDS: int = read("CONCORD_HSTS_SECONDS")
# Only the owner of the domain knows whether its subdomains use TLS and whether browsers should preload the name.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
CONCORD_TRUSTED_PROXIES = read_networks("CONCORD_TRUSTED_PROXIES")
SESSION_ENGINE = "evaluation.accounts.login"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = not IS_LOCAL
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF],
        "font-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
        "base-uri": [NONE],
    }
}

# Login by an OpenID Connect provider, and codes after the password.
CONCORD_OIDC = oidc_settings(without_tls=IS_LOCAL)
CONCORD_SECOND_FACTOR = second_factor_mode()
if CONCORD_OIDC or CONCORD_SECOND_FACTOR != "off":
    INSTALLED_APPS += ["allauth", "allauth.account"]
    MIDDLEWARE.append("allauth.account.middleware.AccountMiddleware")
if CONCORD_OIDC:
    INSTALLED_APPS += ["allauth.socialaccount", "contrib.sso"]
    SOCIALACCOUNT_ADAPTER = "contrib.sso.views.SSOAdapter"
if CONCORD_SECOND_FACTOR != "off":
    INSTALLED_APPS += ["allauth.mfa", "contrib.second_factor"]
    MIDDLEWARE.insert(
        MIDDLEWARE.index("config.middleware.LanguageMiddleware") + 1, "config.middleware.SecondFactorMiddleware"
    )
    MFA_ADAPTER = "contrib.second_factor.views.Adapter"

# django-q2 only wakes workers; all work is in rows of the database. The values follow docs/decisions/0001.
CONCORD_HOST = read("CONCORD_HOST") or socket.gethostname()
Q_CLUSTER = {
    "name": "concord",
    "orm": "default",
    "bulk": 1,
    "workers": read("CONCORD_WORKERS"),
    "queue_limit": read("CONCORD_WORKERS"),
    "timeout": 120,
    "retry": 300,
    "ack_failures": True,
    "max_attempts": 1,
    "save_limit": 200,
    "catch_up": False,
    "poll": 1,
    "recycle": 200,
    "time_zone": TIME_ZONE,
}

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "evaluation.rest.requests.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": [
        "evaluation.rest.requests.StrictJSON",
        "evaluation.rest.requests.FormWithFile",
        "rest_framework.parsers.FormParser",
    ],
    "DEFAULT_FILTER_BACKENDS": ["django_filters.rest_framework.DjangoFilterBackend"],
    "DEFAULT_PAGINATION_CLASS": "evaluation.rest.requests.Pages",
    "PAGE_SIZE": 50,
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "evaluation.rest.errors.handle_exception",
    # `?format=` belongs to the report; DRF's own override would answer 404 to formats it does not know.
    "URL_FORMAT_OVERRIDE": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Concord",
    "VERSION": "1",
    "OAS_VERSION": "3.1.1",
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "SERVE_INCLUDE_SCHEMA": False,
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "evaluation.rest.errors.describe_errors",
        "evaluation.rest.typed.merge_nullable_values",
    ],
    "ENUM_NAME_OVERRIDES": {
        "RunStatusEnum": "evaluation.models.runs.Run.State",
        "QueueStateEnum": "review.models.queues.ReviewQueue.State",
        "StrategyEnum": "review.queues.serializers.strategies",
        "SearchStrategyEnum": "review.models.searches.Search.Strategy",
        **(
            {"LanguageEnum": "contrib.generation.models.Generation.Language"}
            if "contrib.generation" in CONTRIB_APPS
            else {}
        ),
    },
}

DATA_UPLOAD_MAX_MEMORY_SIZE: int = read("CONCORD_UPLOAD_BYTES") + 64 * 1024
# Larger uploads are stored in a temporary file.
FILE_UPLOAD_MAX_MEMORY_SIZE = 2 * 1024 * 1024
DATA_UPLOAD_MAX_NUMBER_FIELDS = 5_000

# Reminders of deadlines. Without a mail server none is sent; the command reports that.
CONCORD_MAIL = mail_settings(read("EMAIL_URL"))
globals().update(CONCORD_MAIL)
DEFAULT_FROM_EMAIL: str = read("DEFAULT_FROM_EMAIL")
EMAIL_TIMEOUT = 20
CONCORD_SITE_URL: str = read("CONCORD_SITE_URL")
CSRF_TRUSTED_ORIGINS = site_origins(CONCORD_SITE_URL)

PORT: int = read("PORT")
CONCORD_WEB_PROCESSES: int = read("CONCORD_WEB_PROCESSES")
CONCORD_DISPATCHER: str = read("CONCORD_DISPATCHER")
CONCORD_PRICES: str = read("CONCORD_PRICES")
CONCORD_JUDGE_ORIGINS: list[str] = read("CONCORD_JUDGE_ORIGINS")
CONCORD_SYSTEM_ORIGINS: list[str] = read("CONCORD_SYSTEM_ORIGINS")
CONCORD_WEBHOOK_ORIGINS: list[str] = read("CONCORD_WEBHOOK_ORIGINS")
CONCORD_SYSTEM_COMMANDS = command_settings("CONCORD_SYSTEM_COMMANDS")
CONCORD_SYSTEM_CALLABLES: dict[str, str] = read("CONCORD_SYSTEM_CALLABLES")
CONCORD_METRICS: str = read("CONCORD_METRICS")
CONCORD_REPLY_RETENTION_DAYS: int = read("CONCORD_REPLY_RETENTION_DAYS")
CONCORD_DRIFT_CHECK_DAYS: int = read("CONCORD_DRIFT_CHECK_DAYS")
CONCORD_CALL_SECONDS: int = read("CONCORD_CALL_SECONDS")
CONCORD_MIN_FREE_DISK_MB: int = read("CONCORD_MIN_FREE_DISK_MB")
CONCORD_LOCAL_MODEL: str = read("CONCORD_LOCAL_MODEL")
CONCORD_BERT_SCORE_MODEL: str = read("CONCORD_BERT_SCORE_MODEL")
CONCORD_BERT_SCORE_LAYER: int = read("CONCORD_BERT_SCORE_LAYER")
CONCORD_BERT_SCORE_BASELINE: str = read("CONCORD_BERT_SCORE_BASELINE")
CONCORD_BACKUP_HOURS: int = read("CONCORD_BACKUP_HOURS")
CONCORD_UPLOAD_BYTES: int = read("CONCORD_UPLOAD_BYTES")
CONCORD_TRACE_MASKS: list[str] = read("CONCORD_TRACE_MASKS")
CONCORD_LARGE_UPLOAD_BYTES: int = read("CONCORD_LARGE_UPLOAD_BYTES")

# Constants that no installation needs to change.
# Lifetime of a claim on a work unit, counted from the worker's last renewal.
CONCORD_LEASE_SECONDS = 90
# Work of one background task before it hands over to the next.
CONCORD_TASK_SECONDS = 45
# Pause between two canary tasks that `serve` enqueues to check the cluster.
CONCORD_HEARTBEAT_SECONDS = 30
# Age of the last heartbeat at which a cluster counts as stuck.
CONCORD_WORKER_TIMEOUT_SECONDS = 120
# PostgreSQL's statement timeout for pages and REST; 0 disables it.
CONCORD_STATEMENT_SECONDS = 60
# Exports (reports, queues) that one person may request; 0 disables the limit.
CONCORD_EXPORTS_PER_HOUR = 200
# Agreements, corrections and comparisons that one person may request by REST; 0 disables the limit.
CONCORD_ANALYSES_PER_HOUR = 600
# Hours before a queue's deadline at which reviewers are reminded.
CONCORD_REMIND_HOURS = [72, 24]
# Validity of a judge prompt's approval.
CONCORD_APPROVAL_DAYS = 180

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "plain": {"format": "{asctime} {levelname} {name} {message}", "style": "{"},
        "json": {"()": "config.logs.JsonLines"},
    },
    "filters": {"known_errors": {"()": "config.logs.KnownErrors"}},
    "handlers": {
        "console": {"class": "logging.StreamHandler", "formatter": "json" if read("CONCORD_JSON_LOGS") else "plain"}
    },
    "root": {"handlers": ["console"], "level": "WARNING"},
    "loggers": {
        "concord": {"level": "INFO"},
        # Django's own console handler would repeat every line.
        "django": {"handlers": []},
        "django-q": {"level": "WARNING", "filters": ["known_errors"]},
    },
}
