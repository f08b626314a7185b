"""What every rank reports at the end."""

import numpy as np

from mpifed.experiment.rank_reports import collect_reports, report, report_tables
from mpifed.federation.transport import RankTraffic
from mpifed.mpi.world import World
from mpifed.results.columns import RANKS
from tests.helpers.algorithm_runs import M, Run, build


def test_a_rank_reports_its_clients_seconds_and_traffic_under_the_columns_of_ranks():
    run, traffic = Run(build("fedavg")), RankTraffic()
    run.rounds(2)
    traffic.count(100, 200, 3)
    traffic.shared = 4096
    found = report(run.hosts[0], traffic)
    assert set(found) == set(RANKS)
    assert (found["clients"], found["samples"]) == (M, run.data.sizes.sum())
    assert found["compute_seconds"] == run.hosts[0].computed > 0
    assert (found["mpi_calls"], found["mpi_bytes_sent"], found["mpi_bytes_received"]) == (1, 100, 200)
    assert found["mpi_messages_received"] == 3
    assert found["max_rss_bytes"] > 1 << 20
    assert found["shared_bytes"] == 4096
    assert report(None, traffic)["clients"] == 0
    ranks, clients = report_tables(*collect_reports(World(), run.hosts[0], RankTraffic()), run.data, run.fed)
    assert {len(column) for column in ranks.values()} == {1}
    assert {len(column) for column in clients.values()} == {M}
    assert np.array_equal(clients["times_selected"], run.fed.times_selected)
    assert clients["compute_seconds"].sum() > 0
