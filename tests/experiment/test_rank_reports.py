"""What every rank reports at the end."""

import numpy as np

from mpifed.experiment.rank_reports import RankReport, collect, tables
from mpifed.federation.transport import Traffic
from mpifed.mpi.world import World
from mpifed.results.columns import RANKS
from tests.helpers.algorithm_runs import M, Run, build


def test_the_fields_of_a_report_are_the_columns_of_ranks():
    assert set(RankReport._fields) == set(RANKS)


def test_a_rank_reports_its_clients_seconds_and_traffic():
    run, traffic = Run(build("fedavg")), Traffic()
    run.rounds(2)
    traffic.count(100, 200, 3)
    traffic.shared = 4096
    report = RankReport.of(run.hosts[0], traffic)
    assert (report.clients, report.samples) == (M, run.data.sizes.sum())
    assert report.compute_seconds == run.hosts[0].computed > 0
    assert (report.mpi_calls, report.mpi_bytes_sent, report.mpi_bytes_received) == (1, 100, 200)
    assert report.mpi_messages_received == 3
    assert report.max_rss_bytes > 1 << 20
    assert report.shared_bytes == 4096
    assert RankReport.of(None, traffic).clients == 0


def test_tables_have_a_row_a_rank_and_a_row_a_client():
    run = Run(build("fedavg"))
    run.rounds(3)
    ranks, clients = tables(*collect(World(), run.hosts[0], Traffic()), run.data, run.fed)
    assert {len(column) for column in ranks.values()} == {1}
    assert {len(column) for column in clients.values()} == {M}
    assert np.array_equal(clients["times_selected"], run.fed.times_selected)
    assert clients["compute_seconds"].sum() > 0
