"""Log-in by an OpenID Connect provider, installed where ``CONCORD_OIDC_ISSUER`` names one."""
