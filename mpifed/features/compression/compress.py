"""Table [compress]: compressors of messages between server and clients, and feedback of their errors."""

from typing import Annotated, Any, Literal, Self

from msgspec import Meta

from mpifed.compressors.compressor import Compressor
from mpifed.core.component import StudyTable
from mpifed.core.errors import UserError
from mpifed.core.toml import toml_value


class Compress(StudyTable):
    """Compressed messages: every array of a reply (``up``) or of a request (``down``) is a message of its own.

    Single numbers travel as they are. With u an upload, C the compressor and a = 1, or 1/(1 + ω) where C is unbiased
    and not contractive, the server goes on with û in the place of u:

        "memory":  û = h + aC(u − h),  h ← û          both sides keep h, the last û of the client; it starts at x⁰
        "error":   û = x + aC(u − x + e),  e ← e + (u − û)                 the client keeps e, what was not sent so far
        "none":    û = x + C(u − x)                                                                nothing is kept

    x is the model that the client has just received, x⁰ the first one; both are 0 for arrays that are no models. Where
    the server keeps the last uploads of all clients anyway, as in FedADMM, they are h. Downloads have memory, one for
    all clients: x̂ = h + aC(x − h) is sent to all m clients, selected or not, and charged so; the server goes on with x.

    bits_up and bits_down count messages to the bit, bytes_up and bytes_down take whole bytes for each message. What a
    method charges before round 1 is compressed too; the rest of round 0, and evaluating, are neither. Draws of C come
    from a stream of the client, or of the server.

    Sources: of memory P. Richtárik, I. Sokolov, I. Fatkhullin, arXiv:2106.05203 (2021), for downloads K. Gruntkowska,
    A. Tyurin, P. Richtárik, arXiv:2209.15218 (2022); of errors F. Seide et al., doi:10.21437/Interspeech.2014-274.
    """

    up: Annotated[Compressor | None, Meta(description="compressor of uploads; absent: as they are")] = None
    down: Annotated[Compressor | None, Meta(description="compressor of downloads; absent: as they are")] = None
    feedback: Annotated[
        Literal["auto", "memory", "error", "none"],
        Meta(description='what is kept of uploads; auto: "error" where the server adds up changes, else "memory"'),
    ] = "auto"

    @classmethod
    def build(cls, table: Any, path: str) -> Self:
        """Return the table; raise UserError for a compressor in its place, which names no direction."""
        if isinstance(table, str) or (isinstance(table, dict) and "name" in table):
            name = toml_value(table if isinstance(table, str) else table["name"])
            raise UserError(
                f"{path} = {name} is wrong: it does not say which messages, so write {path}.up = {name} for uploads, "
                f"{path}.down = {name} for downloads, and options such as {path}.up.k = 10"
            )
        return super().build(table, path)

    def by_direction(self) -> dict[str, Compressor]:
        """Return the compressors by direction: up, down."""
        return {way: C for way, C in (("up", self.up), ("down", self.down)) if C is not None}

    def is_biased(self) -> bool:
        """Return whether uploads have errors that neither cancel nor are made up for."""
        return self.up is not None and self.feedback == "none" and self.up.omega(1) is None
