#!/usr/bin/env python3
"""Verifies an export of Countersign's ledger without Countersign.

Written from docs/RECEIPTS.md alone, which says what an export is and what verifying it finds and
does not find. It shares no code with the daemon. Needs Python 3.11 and the library `cryptography`.

Exit codes: 0 the export verifies, 1 it does not, 2 it could not be tried.
"""

import argparse
import base64
import binascii
import datetime
import hashlib
import json
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

try:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
except ImportError as missing:
    print(f"cannot run: {missing}; see README.md", file=sys.stderr)
    sys.exit(2)

FORMAT = "countersign/export/v1"
LINE_MAX = 16 << 20
RECEIPT_MAX = 1 << 20
DEPTH_MAX = 32
INTEGER_MAX = (1 << 53) - 1

DIGEST = re.compile(r"[0-9a-f]{64}")
KIND = re.compile(r"[a-z_]+")
TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z")
HEAD = re.compile(
    r"countersign/head/v1\n(?P<store>[^\n]+)\n(?P<seq>0|[1-9][0-9]{0,17})\n(?P<hash>[0-9a-f]{64})\n"
    r"(?P<at>[^\n]+)\n\n\u2014 countersign (?P<key>[0-9a-f]{16}) (?P<signature>[A-Za-z0-9+/=]+)\n+"
)

SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


class Bad(Exception):
    """Something is not as it must be; the text says what and where."""


@dataclass(frozen=True)
class Head:
    """A signed head, before anybody has believed it."""

    store: str
    seq: int
    hash: str
    at: str
    key: str
    signature: bytes
    signed: bytes


@dataclass(frozen=True)
class Report:
    """What an export that verifies holds."""

    company: str | None
    head: Head
    readable: int
    decisions: int


def sha256(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()


# JSON, more strictly than the standard library reads it.


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise Bad(f"the member `{twice}` is there twice")
    return members


def not_whole(text: str) -> Any:
    raise Bad(f"`{text[:40]}` is not a whole number")


def read_json(text: str) -> Any:
    try:
        return json.loads(
            text, object_pairs_hook=unique, parse_float=not_whole, parse_constant=not_whole
        )
    except RecursionError:
        raise Bad("it is nested too deeply") from None
    except ValueError as fault:
        raise Bad(f"it is not JSON ({fault})") from None


def quoted(text: str) -> str:
    escaped = (SHORT.get(c) or (f"\\u{ord(c):04x}" if ord(c) < 0x20 else c) for c in text)
    return '"' + "".join(escaped) + '"'


def canonical(value: Any, depth: int = 0) -> str:
    """The canonical form of what receipts are made of."""
    # The receipt itself stands one above its `data`.
    if depth > DEPTH_MAX + 1:
        raise Bad(f"it is nested deeper than {DEPTH_MAX}")
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        if abs(value) > INTEGER_MAX:
            raise Bad(f"the number {value} is not kept exactly by every reader")
        return str(value)
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, list):
        return "[" + ",".join(canonical(item, depth + 1) for item in value) + "]"
    names = sorted(value, key=lambda name: name.encode("utf-16-be", "surrogatepass"))
    members = (f"{quoted(name)}:{canonical(value[name], depth + 1)}" for name in names)
    return "{" + ",".join(members) + "}"


def is_same(one: Any, other: Any) -> bool:
    # To Python `True` is a 1.
    return canonical(one) == canonical(other)


def to_bytes(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise Bad("it holds a lone surrogate") from None


def is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def expect(condition: bool, otherwise: str) -> None:
    if not condition:
        raise Bad(otherwise)


def expect_members(value: Any, *names: str) -> None:
    expect(isinstance(value, dict), "it is not an object")
    odd = set(value) ^ set(names)
    expect(not odd, f"the member `{min(odd, default='')}` is missing, or must not be there")


def is_digest(value: Any) -> bool:
    return isinstance(value, str) and DIGEST.fullmatch(value) is not None


def is_time(value: Any) -> bool:
    if not isinstance(value, str) or not TIME.fullmatch(value):
        return False
    try:
        return datetime.datetime.fromisoformat(value).year >= 1970
    except ValueError:
        return False


# Signed heads.


def key_id(key: bytes) -> str:
    return sha256(b"countersign/ledger-key/v1\n", key).hex()[:16]


def read_head(text: str) -> Head:
    found = HEAD.fullmatch(text)
    if found is None or not is_time(found["at"]):
        raise Bad("it is not a signed head")
    try:
        signature = base64.b64decode(found["signature"], validate=True)
    except binascii.Error:
        raise Bad("its signature is not base64") from None
    # Base64 has spare bits, so that one signature could have several spellings.
    expect(
        len(signature) == 64 and base64.b64encode(signature).decode() == found["signature"],
        "its signature is not one of Ed25519",
    )
    return Head(
        store=found["store"],
        seq=int(found["seq"]),
        hash=found["hash"],
        at=found["at"],
        key=found["key"],
        signature=signature,
        signed=text[: text.index("\n\n") + 1].encode(),
    )


def expect_signed(head: Head, key: bytes, store: str) -> None:
    expect(head.key == key_id(key), f"it is signed by key {head.key}, not by {key_id(key)}")
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(head.signature, head.signed)
    except (InvalidSignature, ValueError):
        raise Bad(f"the signature of key {head.key} is wrong") from None
    expect(head.store == store, f"it is of store {head.store}, not of {store}")


# Receipts.


def read_receipt(data: bytes, store: str) -> dict[str, Any]:
    expect(len(data) <= RECEIPT_MAX, f"it has more than {RECEIPT_MAX} bytes")
    receipt: dict[str, Any] = read_json(data.decode())
    expect_members(receipt, "at", "company", "data", "kind", "operation", "store", "v")
    expect(is_whole(receipt["v"]) and receipt["v"] == 1, "it is not of version 1")
    expect(receipt["store"] == store, f"it is of store {receipt['store']}, not of {store}")
    expect(is_time(receipt["at"]), "`at` is not a time in the form of receipts")
    kind = receipt["kind"]
    expect(isinstance(kind, str) and bool(KIND.fullmatch(kind)), "`kind` is not a word")
    for name in ("company", "operation"):
        expect(receipt[name] is None or isinstance(receipt[name], str), f"`{name}` is not a text")
    expect(to_bytes(canonical(receipt)) == data, "its bytes are not in canonical form")
    return receipt


def expect_decided(receipt: dict[str, Any]) -> str | None:
    """Makes a decision's hash again from what it says was hashed; gives the hash."""
    data = receipt["data"]
    expect(isinstance(data, dict), "the decision's `data` is not an object")
    text = data.get("hashed")
    if text is None:
        return None
    expect(isinstance(text, str), "`hashed` is not a text")
    made = sha256(to_bytes(text)).hex()
    expect(made == data.get("hash"), "`hash` is not that of `hashed`")
    hashed = read_json(text)
    expect(isinstance(hashed, dict) and canonical(hashed) == text, "`hashed` is not canonical")
    decision = data.get("decision")
    said = {
        **{name: receipt[name] for name in ("store", "operation", "company")},
        **{name: data.get(name) for name in ("action", "mandate", "principal", "params")},
        "policy": decision.get("policy") if isinstance(decision, dict) else None,
    }
    for name, value in said.items():
        expect(
            is_same(hashed.get(name), value), f"`{name}` of `hashed` is not what the receipt says"
        )
    facts, found = hashed.get("facts"), data.get("facts")
    expect(isinstance(facts, dict) and isinstance(found, dict), "there are no facts")
    for name, value in facts.items():
        fact = found.get(name)
        expect(
            isinstance(fact, dict) and "value" in fact and is_same(fact["value"], value),
            f"the fact `{name}` of `hashed` is not what the receipt says",
        )
    return made


# The export.


def lines_of(file: BinaryIO) -> Iterator[str]:
    """The lines of an export, without their newlines."""
    while raw := file.readline(LINE_MAX + 1):
        expect(len(raw) <= LINE_MAX, f"it is longer than {LINE_MAX} bytes")
        expect(raw.endswith(b"\n"), "the export ends within it")
        try:
            yield raw[:-1].decode()
        except UnicodeDecodeError:
            raise Bad("it is not UTF-8") from None


class Verifier:
    """Follows one export from its first line to its last.

    What is wrong is raised as `Bad`, the first thing only.
    """

    def __init__(self, file: BinaryIO, checkpoints: Iterable[bytes], trusted: bytes | None):
        self.lines = lines_of(file)
        # Where it is, for whoever reads what is wrong.
        self.line = 0
        self.place = ""
        self.trusted = trusted
        self.kept = [read_kept(number, text) for number, text in enumerate(checkpoints, 1)]
        self.readable = 0
        self.decisions = 0
        # The hash of the newest decision of each operation.
        self.decided: dict[str | None, str] = {}

    def verify(self) -> Report:
        try:
            self.header()
        except Bad as fault:
            raise Bad(f"line {self.line}: {fault}") from None
        self.check_kept()
        try:
            last = sha256(b"countersign/genesis/v1\n", self.store.encode())
            for seq in range(1, self.count + 1):
                self.place = f", receipt {seq}"
                last = self.entry(seq, last)
            self.place = ", the signed head"
            head = self.head(last)
            self.place = ""
            self.line += 1
            expect(next(self.lines, None) is None, "something follows the last line")
        except Bad as fault:
            raise Bad(f"line {self.line}{self.place}: {fault}") from None
        return Report(self.company, head, self.readable, self.decisions)

    def next_line(self) -> Any:
        self.line += 1
        text = next(self.lines, None)
        if text is None:
            raise Bad("the export ends before it")
        return read_json(text)

    def header(self) -> None:
        header = self.next_line()
        expect_members(header, "format", "store", "public_key", "company", "count")
        expect(header["format"] == FORMAT, f"it is not of the format {FORMAT}")
        store, company, count = header["store"], header["company"], header["count"]
        expect(isinstance(store, str) and bool(store), "`store` is not a text")
        expect(company is None or isinstance(company, str), "`company` is not a text")
        expect(is_whole(count) and count >= 1, "`count` is not the number of receipts")
        expect(is_digest(header["public_key"]), "`public_key` is not 64 digits")
        to_bytes(store)
        key = bytes.fromhex(header["public_key"])
        if self.trusted is not None:
            trusted = key_id(self.trusted)
            expect(key == self.trusted, f"it is of key {key_id(key)}, not of {trusted}")
        self.store, self.company, self.count, self.key = store, company, count, key

    def entry(self, seq: int, last: bytes) -> bytes:
        """The next receipt; gives its hash."""
        line = self.next_line()
        readable = isinstance(line, dict) and "receipt" in line
        expect_members(line, "seq", "hash", "receipt" if readable else "content")
        expect(is_whole(line["seq"]) and line["seq"] == seq, f"receipt {line['seq']} stands there")
        expect(is_digest(line["hash"]), "`hash` is not a digest")
        if readable:
            expect(isinstance(line["receipt"], str), "`receipt` is not a text")
            data = to_bytes(line["receipt"])
            content = sha256(data)
        else:
            expect(is_digest(line["content"]), "`content` is not a digest")
            content = bytes.fromhex(line["content"])
        linked = sha256(last, content)
        expect(
            linked.hex() == line["hash"],
            "it is not what was written, or does not follow the one before it",
        )
        for kept in self.kept:
            expect(
                kept.seq != seq or kept.hash == line["hash"],
                "it is not the one that the kept checkpoint vouches for: the chain was forked",
            )
        if readable:
            self.receipt(seq, read_receipt(data, self.store))
        else:
            expect(self.company is not None, "it cannot be read, in an export of everything")
        return linked

    def receipt(self, seq: int, receipt: dict[str, Any]) -> None:
        """What a receipt that can be read says."""
        self.readable += 1
        expect(self.company in (None, receipt["company"]), "it is of another company")
        expect(
            (seq == 1) == (receipt["kind"] == "store_created"),
            "a chain begins with the making of its store, and only there",
        )
        operation = receipt["operation"]
        if receipt["kind"] == "decision":
            decided = expect_decided(receipt)
            if decided is not None:
                self.decisions += 1
                self.decided[operation] = decided
        if receipt["kind"] in ("vote", "claim"):
            data, decided = receipt["data"], self.decided.get(operation)
            expect(
                isinstance(data, dict) and decided is not None and data.get("hash") == decided,
                f"it is a {receipt['kind']} on what was not decided before it",
            )

    def head(self, last: bytes) -> Head:
        line = self.next_line()
        expect_members(line, "head")
        expect(isinstance(line["head"], str), "`head` is not a text")
        head = read_head(line["head"])
        expect_signed(head, self.key, self.store)
        expect(
            head.seq == self.count, f"it is for receipt {head.seq}, and the last is {self.count}"
        )
        expect(head.hash == last.hex(), "it was signed for another chain")
        return head

    def check_kept(self) -> None:
        for number, kept in enumerate(self.kept, 1):
            try:
                expect_signed(kept, self.key, self.store)
                expect(
                    1 <= kept.seq <= self.count,
                    f"it vouches for receipt {kept.seq}, but the chain ends at {self.count}: "
                    "its end was cut off",
                )
            except Bad as fault:
                raise Bad(f"checkpoint {number}: {fault}") from None


def read_kept(number: int, text: bytes) -> Head:
    try:
        return read_head(text.decode())
    except UnicodeDecodeError:
        raise Bad(f"checkpoint {number}: it is not UTF-8") from None
    except Bad as fault:
        raise Bad(f"checkpoint {number}: {fault}") from None


def shown(text: str) -> str:
    # Text of an export must not pass for a line of ours.
    return "".join(c if c.isprintable() else "?" for c in text)


def say(verifier: Verifier, report: Report) -> None:
    head, count = report.head, report.head.seq
    whose = f" of company {report.company}" if report.company is not None else ""
    lines = [
        f"good: {count} receipts of store {head.store} form one chain",
        f"good: {report.readable} can be read{whose}, {count - report.readable} are digests",
        f"good: {report.decisions} decisions have the hash of what was decided on",
        f"good: key {head.key} signed the end at {head.at}",
    ]
    for kept in verifier.kept:
        lines.append(f"good: the checkpoint of {kept.at} is in it, at receipt {kept.seq}")
    if verifier.trusted is None:
        lines.append("note: it vouches for itself; give the key that you trust with --public-key")
    if not verifier.kept:
        lines.append("note: whether its end was cut off can be seen with a --checkpoint only")
    for line in lines:
        print(shown(line))


def public_key(text: str) -> bytes:
    if not is_digest(text):
        raise argparse.ArgumentTypeError("not 64 lower case hexadecimal digits")
    return bytes.fromhex(text)


def main() -> int:
    parser = argparse.ArgumentParser(description="Verifies an export of Countersign's ledger.")
    parser.add_argument("export", metavar="EXPORT", help="from `countersign receipts export`")
    parser.add_argument(
        "--checkpoint",
        metavar="FILE",
        action="append",
        default=[],
        help="a signed head that was kept elsewhere; may be given more than once",
    )
    parser.add_argument(
        "--public-key",
        metavar="DIGITS",
        type=public_key,
        help="the ledger's public key, from `countersign receipts key`",
    )
    arguments = parser.parse_args()
    try:
        checkpoints = []
        for path in arguments.checkpoint:
            with open(path, "rb") as file:
                checkpoints.append(file.read())
        with open(arguments.export, "rb") as file:
            verifier = Verifier(file, checkpoints, arguments.public_key)
            say(verifier, verifier.verify())
    except OSError as fault:
        print(f"cannot read: {fault}", file=sys.stderr)
        return 2
    except Bad as fault:
        print(shown(f"bad: {fault}"), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
