"""The certificates of a gateway: an authority of its own, made once, and the server's, made anew before it ends."""

from __future__ import annotations

import datetime
import ipaddress
import os
from contextlib import suppress

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tmuxctl.errors import Failed, Usage
from tmuxctl.gateway.server.settings import GatewayFiles, GatewaySettings
from tmuxctl.timing import TIMING, GatewayTiming
from tmuxctl.untrusted import read_file
from tmuxctl.value import Value

FILE_LIMIT = 64 << 10

AUTHORITY, AUTHORITY_KEY, SERVER, SERVER_KEY = "ca.pem", "ca.key", "server.pem", "server.key"
ROUTE, ROUTE_KEY = "route.pem", "route.key"
"""What nodes of a cluster show each other, and leaf nodes. The authority signs such
certificates for nodes alone, so each believes the others."""


class ServerCertificate(Value):
    """What the server shows: files of its certificate and key (PEM), the authority that clients are to trust (PEM; None: the
    ones that they trust anyway), the names it is for, and from when until when it holds (seconds since 1970)."""

    cert: str
    key: str
    authority: str | None
    names: tuple[str, ...]
    begins: float
    ends: float


def find_certificate(files: GatewayFiles, settings: GatewaySettings) -> ServerCertificate:
    """The certificate that the server has now; Failed `bad_certificate` where its file cannot be read."""
    cert, key, authority = files.path(SERVER), files.path(SERVER_KEY), None
    if settings.cert and settings.key:
        cert, key = settings.cert, settings.key
    else:
        authority = find_authority(files)
    found = _parse(cert, _read(cert))
    return ServerCertificate(
        cert,
        key,
        authority,
        _names_of(found),
        found.not_valid_before_utc.timestamp(),
        found.not_valid_after_utc.timestamp(),
    )


def find_authority(files: GatewayFiles) -> str:
    """The certificate of the gateway's own authority (PEM). Failed `bad_certificate` where there is none."""
    return _read(files.path(AUTHORITY)).decode("ascii", "replace")


def make_certificates(
    files: GatewayFiles, settings: GatewaySettings, now: float, timing: GatewayTiming = TIMING.gateway
) -> ServerCertificate:
    """Make the authority and the server's certificates where they are missing, end soon, or are for other names. The operator's
    own are only read, and so are those of a node, which came with its file; Usage `bad_certificate` for one that is over. `now`
    is in seconds since 1970."""
    is_node = os.path.exists(files.path(SERVER)) and not os.path.exists(files.path(AUTHORITY_KEY))
    if (settings.nodes or settings.leaf_port) and not is_node:
        _renew(files, (ROUTE, ROUTE_KEY), settings.names, now, timing)
    if settings.cert:
        found = find_certificate(files, settings)
        if found.ends < now:
            hint = "name one that holds: --cert FILE --key FILE"
            raise Usage(f"{settings.cert} has ended", reason="bad_certificate", hint=hint)
        return found
    if not is_node:
        _renew(files, (SERVER, SERVER_KEY), settings.names, now, timing)
    return find_certificate(files, settings)


def sign_certificate(
    files: GatewayFiles,
    names: tuple[str, ...],
    now: float,
    timing: GatewayTiming = TIMING.gateway,
    *,
    node: bool = False,
) -> tuple[bytes, bytes]:
    """A new certificate of a server with these names, and its key, both PEM; `node`: to show to other nodes, which connect to each
    other both ways."""
    authority = _parse(files.path(AUTHORITY), _read(files.path(AUTHORITY)))
    try:
        signer = serialization.load_pem_private_key(_read(files.path(AUTHORITY_KEY)), password=None)
    except ValueError:
        signer = None
    if not isinstance(signer, ec.EllipticCurvePrivateKey):
        hint = "restore it, or remove ca.pem: all credentials have to be made anew then (tmuxctl gateway rotate ID)"
        raise Failed(f"{files.path(AUTHORITY_KEY)} holds no key", reason="bad_certificate", hint=hint)
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "tmuxctl gateway")])
    usages = [ExtendedKeyUsageOID.SERVER_AUTH, *([ExtendedKeyUsageOID.CLIENT_AUTH] if node else [])]
    made = (
        _builder(name, authority.subject, key.public_key(), signer.public_key(), now, timing.certificate_days)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        .add_extension(x509.SubjectAlternativeName([_general_name(one) for one in names]), critical=False)
        .sign(signer, hashes.SHA256())
    )
    return made.public_bytes(serialization.Encoding.PEM), _key_bytes(key)


def _renew(
    files: GatewayFiles, paths: tuple[str, str], names: tuple[str, ...], now: float, timing: GatewayTiming
) -> None:
    """Make a certificate and its key where they are missing, end soon, or are for other names; the authority first."""
    files.make_folder()
    if not os.path.exists(files.path(AUTHORITY)):
        _make_authority(files, now, timing)
    with suppress(Failed):
        found = _parse(files.path(paths[0]), _read(files.path(paths[0])))
        lasting = found.not_valid_after_utc.timestamp() > now + timing.renewal_days * 86400
        if lasting and _names_of(found) == names:
            return
    cert, key = sign_certificate(files, names, now, timing, node=paths[0] == ROUTE)
    files.replace(paths[1], key)
    files.replace(paths[0], cert)


def _make_authority(files: GatewayFiles, now: float, timing: GatewayTiming) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "tmuxctl gateway authority")])
    made = (
        _builder(name, name, key.public_key(), key.public_key(), now, timing.authority_days)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .sign(key, hashes.SHA256())
    )
    files.replace(AUTHORITY_KEY, _key_bytes(key))
    files.replace(AUTHORITY, made.public_bytes(serialization.Encoding.PEM))


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    signer: ec.EllipticCurvePublicKey,
    now: float,
    days: int,
) -> x509.CertificateBuilder:
    moment = datetime.datetime.fromtimestamp(now, datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        # clocks of other machines may be behind
        .not_valid_before(moment - datetime.timedelta(days=1))
        .not_valid_after(moment + datetime.timedelta(days=days))
        # Python 3.13 refuses certificates without these two (VERIFY_X509_STRICT)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer), critical=False)
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(name: str) -> x509.GeneralName:
    with suppress(ValueError):
        return x509.IPAddress(ipaddress.ip_address(name))
    return x509.DNSName(name)


def _names_of(certificate: x509.Certificate) -> tuple[str, ...]:
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    return tuple(str(one.value) for one in found if isinstance(one, (x509.DNSName, x509.IPAddress)))


def _key_bytes(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _read(path: str) -> bytes:
    try:
        # the operator's own may be a link, as those of an ACME client are
        return read_file(path, FILE_LIMIT, follow=True)
    except OSError as error:
        raise Failed(
            f"{ascii(path)}: {error.strerror}", reason="bad_certificate", hint="make it: tmuxctl gateway up"
        ) from None


def _parse(path: str, data: bytes) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(data)
    except ValueError:
        raise Failed(
            f"{ascii(path)} holds no certificate", reason="bad_certificate", hint="remove it; then: tmuxctl gateway up"
        ) from None
