"""Signatures of requests to AWS by ``botocore``, of which only the credential chain and the signing are used.

The guarded transport sends the signed requests. ``botocore`` itself calls only the credential services that the
operator's environment and AWS profile name; reasons: docs/decisions/0025."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from evaluation.core.errors import DomainError
from evaluation.network.outcomes import Outcome
from evaluation.network.transport import TransportFault

_REGION = re.compile(r"\.([a-z]{2,4}(?:-[a-z]+)+-\d+)\.")

_RENEWAL_SECONDS = 30.0


class AwsSigner:
    """Signs requests to a service with Signature Version 4.

    The region is that of the base URL's host, else that of the environment or profile. ``secrets`` are those of the
    last request: errors of AWS repeat the headers.

    :raises DomainError: ``bedrock_not_installed``, ``aws_region_missing``, ``aws_credentials_missing``."""

    def __init__(self, base_url: str, service: str) -> None:
        try:
            from botocore.session import Session
        except ImportError as error:
            raise DomainError("bedrock_not_installed") from error
        self._service, session = service, Session()
        self.secrets: tuple[str, ...] = ()
        try:
            region = _REGION.search(urlsplit(base_url).hostname or "")
            self._region = region[1] if region else session.get_config_variable("region")
            self._credentials = session.get_credentials()
        # botocore passes on any error of a missing or faulty credential program or token file.
        except Exception as error:
            raise DomainError("aws_credentials_missing", detail=_describe(error)) from error
        if not self._region:
            raise DomainError("aws_region_missing")
        if self._credentials is None:
            raise DomainError("aws_credentials_missing", detail="no provider of the chain has any")

    async def headers(self, method: str, url: str, body: bytes, content_type: str) -> Mapping[str, str]:
        """Headers of the signed request, with renewed credentials if necessary.

        :raises TransportFault: ``unauthorised`` if credentials cannot be renewed, ``connection`` if that takes long."""
        from botocore.auth import SigV4Auth
        from botocore.awsrequest import AWSRequest

        try:
            # Renewal calls a credential service.
            renewal = asyncio.to_thread(self._credentials.get_frozen_credentials)
            credentials = await asyncio.wait_for(renewal, _RENEWAL_SECONDS)
        except TimeoutError as error:
            raise TransportFault(Outcome.CONNECTION, "AWS credentials were not renewed in time") from error
        except Exception as error:
            raise TransportFault(Outcome.UNAUTHORISED, f"AWS credentials: {_describe(error)}") from error
        if not (credentials.access_key and credentials.secret_key):
            raise TransportFault(Outcome.UNAUTHORISED, "AWS credentials: no key")
        self.secrets = (credentials.secret_key, credentials.token or "")
        request = AWSRequest(method=method, url=url, data=body, headers={"Content-Type": content_type})
        SigV4Auth(credentials, self._service, self._region).add_auth(request)
        return dict(request.headers)


def _describe(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:200]
