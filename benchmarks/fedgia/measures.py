"""Numbers that only the tables of FedGiA show: gradients of a round."""

from benchmarks.fedepm.measures import gradients

MEASURES = {"gradients": gradients}
