"""Table [asynchronous]: the number of uploads with which the server takes a step, and their largest age."""

from typing import Annotated

from msgspec import Meta

from mpifed.core.component import StudyTable


class Asynchronous(StudyTable):
    """Asynchronous rounds: the server takes a step as soon as the first uploads arrive; the others are under way.

    All clients are sent a model at the start, and work at the same time. An upload arrives T seconds after the model
    was sent to its client: T as [system] states it, with the jitter of the client's own stream at its own count of
    uploads. In a round

    - the first ``arrivals`` uploads by time arrive, of equal times those of lower client numbers, and with them every
      upload that would otherwise be more than ``staleness`` rounds old; simulated_seconds goes on to the last of these;
    - the server makes its new model of them, as the method says;
    - at the start of the next round it sends that model to the clients that arrived, and they begin anew.

    With system.availability the server sends models to clients that are there. One that leaves before its T loses its
    work and is sent a new model when it is there again; where all under way would leave, the fastest replies all the
    same.

    The age of an upload is the number of rounds between the one that sent its client the model and the one in which it
    arrives: 0 where it comes in the same round. The columns staleness and staleness_max have the mean and the largest.

    Since T is computed and never measured, who arrives is known beforehand. Nothing is computed when a model is sent.
    When an upload is needed that is not there, one request lets all clients under way compute, on all ranks, each from
    its own model; their uploads rest with them until their time. computed_at_once says how many these are. The bits are
    those of computing one upload after the other, on any number of ranks.

    /selection has the clients that arrived, and [selection] has no say. A model sent counts as a download in the
    round that sends it, an upload in the round in which it arrives.
    """

    arrivals: Annotated[int, Meta(ge=1, description="uploads with which the server takes a step")] = 1
    staleness: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(description="rounds after which the server waits for an upload; 0: for all clients; absent: never"),
    ] = None
