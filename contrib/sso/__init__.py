"""Login by an OpenID Connect provider; installed if ``CONCORD_OIDC_ISSUER`` names one."""
