"""Sentences that advise a setting, with what comes out where somebody does what they say."""

from typing import NamedTuple


class Advice(NamedTuple):
    """A study as it is typed and what is said of it, a regex whose groups are the settings that it advises.

    ``then`` is what is typed behind the study, without words that begin as those with a minus; where it is empty, the
    groups as they stand. Then f falls in the run, whose model is that of ``like`` where that is given; or the sentence
    ``next`` is said.
    """

    study: str
    says: str
    then: str = ""
    like: str = ""
    next: str = ""


LOGISTIC = "problem=logistic data=gaussian data.samples=9 data.features=3 data.clients=6"
STRONG = f"{LOGISTIC} problem.mu=0.1 problem.regulariser=whole"
DUAL = f"{STRONG} algorithm=feddcd"
SAMPLES = "data=gaussian data.samples=9 data.features=3 data.clients=6"
LINEAR = f"algorithm=fedavg problem=least-squares {SAMPLES} data.task=linear"
COUNTS = "problem=poisson data=gaussian data.task=positive data.samples=9 data.features=3 data.clients=6"
DIGITS = "problem=softmax algorithm=fedavg data=digits"
SLOW = f"{LINEAR} algorithm=fedavg system.latency=0.1 system.speed=10"
PRIVATE = f"{LOGISTIC} algorithm=fedepm algorithm.noise=clipped algorithm.epsilon=0.1"
GUARANTEED = r"^privacy: each upload is ε-private with ε = 0\.1 "
GRAPH = f"{LINEAR} algorithm=dgd graph=ring"
TABLE = "algorithm=gd data=file data.target=y data.client=site data.path="
PLAIN = f"{TABLE}plain.csv"

METHODS = [
    Advice(
        f"{LINEAR} algorithm=fedgia-async algorithm.adaptive=true",
        "tell no curvature; (fedgia) has adaptive$",
        "algorithm=fedgia",
    ),
    Advice(f"{LINEAR} algorithm=feddcd", r"it needs convexity .*; ad-admm, .* can$", "algorithm=ad-admm"),
    Advice(
        f"{LOGISTIC} problem.mu=0 algorithm=feddcd",
        "it needs strongly convex f_i, so set the problem's regularisation above 0",
        "problem.mu=0.1",
    ),
    Advice(
        "problem=softmax data=synthetic data.clients=4 data.features=3 data.classes=3 algorithm=feddcd",
        "so set the problem's regularisation above 0, and (bias = false) where there is one$",
        "problem.lam=0.1 problem.bias=false",
    ),
    Advice(
        f"{LOGISTIC} problem.mu=0 algorithm=fednl algorithm.option=A",
        r"so set its regularisation above 0, or (option = \"B\")$",
        "algorithm.option=B",
        like=f"{LOGISTIC} problem.mu=0 algorithm=fednl algorithm.option=B",
    ),
    Advice(f"{LOGISTIC} problem.mu=0 algorithm=fednl algorithm.option=A", "set its regularisation", "problem.mu=0.1"),
    Advice(
        f"{LOGISTIC} problem.mu=0 algorithm=proxskip", "it needs algorithm.p where the f_i are not", "algorithm.p=0.5"
    ),
    Advice(f"{DUAL} selection.count=1", "feddcd needs at least 2", "selection.count=2"),
    Advice(f"{DUAL} selection=cyclic selection.count=3", "overlap = 0 is wrong.* at least 1$", "selection.overlap=1"),
    Advice(f"{DUAL} algorithm.schedule=sqrt-samples", "such as constant or (log2)$", "algorithm.schedule=log2"),
    Advice(
        f"{DUAL} algorithm.eta=0.1 algorithm.schedule=log2",
        "write the factor into the schedule's a$",
        "-algorithm.eta algorithm.schedule.a=0.1",
    ),
    Advice(f"{GRAPH} algorithm.k0=2", '(order = "adapt-combine")$', "algorithm.order=adapt-combine"),
    Advice(
        f"{LINEAR} algorithm=diana algorithm.compressor=topk algorithm.compressor.k=2",
        "needs an unbiased one, .* such as (randk), randseqk, natural or dither$",
        "algorithm.compressor=randk",
    ),
    Advice(
        f"{LINEAR} algorithm=fednova algorithm.optimizer=adam",
        "so it must be sgd, or momentum",
        "algorithm.optimizer=sgd",
    ),
    Advice(f"{LOGISTIC} algorithm=nesterov algorithm.mu=1000", r"at most 1/γ, which is \d", "algorithm.mu=0.1"),
    Advice(
        f"{LINEAR} algorithm=fedavg algorithm.lr=0.1",
        r"such as (algorithm\.step = 0\.1)$",
        "-algorithm.lr algorithm.step=0.1",
    ),
    Advice(f"{LINEAR} algorithm=newton system.dropout=0.1", "so no client can be absent$", "-system"),
    Advice(
        "problem=mlp data=gaussian data.samples=9 data.features=3 data.clients=6",
        r"it needs lipschitz .*; apfl, ditto, .*fedavg, .* can$",
        "algorithm=fedavg algorithm.step=0.1",
    ),
    Advice(f"{COUNTS} algorithm=fedgia", "it needs lipschitz .*; apfl, .*newton, .* can$", "algorithm=newton"),
    Advice(
        "problem=svm data=gaussian data.clients=6 algorithm=fednl", "it needs hess .*; apfl, .* can$", "algorithm=apfl"
    ),
    Advice(
        "data=quadratic data.clients=4 algorithm=fedavg algorithm.batch_size=2",
        "has no mini-batches, .* it must be 0$",
        "algorithm.batch_size=0",
    ),
    Advice(
        f"{COUNTS} algorithm=fednl start=far.npz stop.diverged=3",
        r"^f diverges: .* so set (algorithm\.line_search = true); stop",
    ),
]
PRIVACY = [
    Advice(
        f"{LOGISTIC} algorithm=fedepm algorithm.noise=none algorithm.noise_seed=4",
        'only (noise = "clipped") has a seed of its own',
        "algorithm.noise=clipped",
        next=r"^no privacy is guaranteed: whoever knows algorithm\.noise_seed = 4 can subtract the noise",
    ),
    Advice(
        f"{PRIVATE} algorithm.epsilon=1e-30", r"so it must be at least \d\S*$", "algorithm.epsilon=0.1", next=GUARANTEED
    ),
    Advice(f"{PRIVATE} dtype=float32", 'so it must be "float64"$', "dtype=float64", next=GUARANTEED),
    Advice(
        f"{PRIVATE} objective.weights=samples", 'so it must be "clients"$', "objective.weights=clients", next=GUARANTEED
    ),
    Advice(
        f"{LOGISTIC} algorithm=flame-dp algorithm.noise_multiplier=1e-30",
        r"so it must be at least \S+, or 0 for no noise$",
        "algorithm.noise_multiplier=1e-11",
        next=r"privacy: each upload is ρ-zCDP",
    ),
    Advice(
        f"{LOGISTIC} algorithm=flame-dp algorithm.seen=sum selection=all masks.sums=masked masks.fraction=10",
        "so it must be at least 12$",
        "masks.fraction=12",
        next="ρ-zCDP",
    ),
    Advice(f"{PRIVATE} selection=importance", "no data, such as (uniform)", "selection=uniform", next=GUARANTEED),
    Advice(
        f"{PRIVATE} selection=importance",
        r"or importance with (selection\.odds) that are known without the data$",
        "selection.odds=[1,2,1,1,1,1]",
        next=GUARANTEED,
    ),
]
MESSAGES = [
    Advice(
        f"{LINEAR} compress=topk",
        r"so write (compress\.up = \"topk\") for uploads",
        "-compress compress.up=topk",
        next=r"^compress\.up\.k is missing",
    ),
    Advice(
        f"{LINEAR} algorithm=fedavg compress=topk",
        r"so write compress.up .* and options such as (compress\.up\.k = 10)$",
        "-compress compress.up=topk compress.up.k=10",
        like=f"{LINEAR} algorithm=fedavg",  # of three numbers ten are all
    ),
    Advice(
        f"{LINEAR} algorithm=fedadmm compress.up=natural compress.feedback=error",
        'so it must be "memory"$',
        "compress.feedback=memory",
        like=f"{LINEAR} algorithm=fedadmm compress.up=natural",
    ),
    Advice(
        f"{LINEAR} compress.feedback=error algorithm=fedavg",
        r"about compress\.up, which is absent$",
        "compress.up=natural",
    ),
    Advice(f"{DUAL} compress.down=natural", "needs exact downloads", "-compress", like=DUAL),
    Advice(f"{GRAPH} compress.up=natural", "a method that has one, such as choco$", "-compress algorithm=choco"),
    Advice(f"{GRAPH} masks.bits=30", "masks cannot be used with graph", "-masks", like=GRAPH),
    Advice(f"{DUAL} masks.bits=40 selection=greedy", "candidates send their scores", "selection=uniform"),
    Advice(f"{LINEAR} masks.bits=40 algorithm=fednl", "it compresses its uploads$", "algorithm=gd"),
    Advice(f"{LINEAR} masks.bits=40 selection.count=1", "masks need at least 2", "selection.count=2"),
    Advice(
        f"{LINEAR} algorithm=fedavg selection.count=3 masks.bits=40 system.dropout=0.1 system.least=1",
        r"system\.least = 1 is wrong.* so it must be at least 3$",
        "system.least=3",
    ),
    Advice(
        f"{LINEAR} algorithm=fedavg masks.sums=masked compress.up=natural", "cannot be used with masks", "-compress"
    ),
    Advice(
        f"{LINEAR} algorithm=fedavg objective.weights=samples compress.up=natural",
        'with compress$|so it must be "clients" with compress$',
        "objective.weights=clients",
    ),
    Advice(f"{LINEAR} algorithm=newton attack=sign-flip", ".*, gd, .* do, and a class", "algorithm=gd"),
    Advice(f"{LINEAR} algorithm=gd robust=median masks.bits=40", "masks cannot be used with it", "-masks"),
    Advice(f"{LINEAR} algorithm=gd attack.clients=[1,1]", "name each once$", "attack.clients=[1]"),
    Advice(
        f"{LOGISTIC} algorithm=gd robust=trimmed-mean robust.share=0.3 robust.bucket=4",
        r"so it must be below 1\.67$",
        "robust.bucket=1",
    ),
    Advice(f"{SLOW} asynchronous.arrivals=2 masks.bits=40", r"masks cannot be used with \[asynchronous\]", "-masks"),
    Advice(
        f"{COUNTS} problem=cox algorithm=fedavg attack=labels attack.clients=1", "have no opposite$", "attack=sign-flip"
    ),
    Advice(
        f"{LINEAR} algorithm=gd masks.sums=masked masks.bits=20 masks.fraction=19",
        r"^masks\.fraction = 19 is wrong.* it must be at most \d+$",
        "masks.fraction=10",
    ),
]
CLIENTS = [
    Advice(
        f"{LINEAR} algorithm=fedavg asynchronous.arrivals=2",
        r"wrong without a table \[system\]: .* the speed, bandwidth and latency",
        "system.speed=10",
    ),
    Advice(
        f"{SLOW} algorithm=newton asynchronous.arrivals=2",
        "; ad-admm, .* can, and without",
        "algorithm=ad-admm",
        next=r"^system\.passes is missing",
    ),
    Advice(
        f"{LINEAR} algorithm=newton asynchronous.arrivals=2 system.latency=0.1",
        r"and without \[asynchronous\] so can newton run$",
        "algorithm=newton -asynchronous",
        like=f"{LINEAR} algorithm=newton",
    ),
    Advice(f"{SLOW} asynchronous.arrivals=2 compress.down=natural", "so leave it out$", "-compress"),
    Advice(f"{SLOW} algorithm=fedadmm asynchronous.arrivals=2 compress.up=natural", "so leave it out$", "-compress"),
    Advice(f"{SLOW} asynchronous.arrivals=2 system.dropout=0.1", "so leave it out$", "-system.dropout"),
    Advice(f"{SLOW} asynchronous.arrivals=2 selection=cyclic", r"so leave \[selection\] out$", "-selection"),
    Advice(
        f"{LINEAR} algorithm=fedavg asynchronous.arrivals=2 system.dropout=0",
        r"so give system\.speed, system\.latency or a bandwidth$",
        "system.speed=10",
    ),
    Advice(f"{SLOW} algorithm=fedavg system.partial=true", r"wrong without system\.deadline", "system.deadline=3"),
    Advice(
        f"{LINEAR} algorithm=fedavg system.partial=true system.deadline=3",
        r"wrong without system\.speed",
        "system.speed=10",
    ),
    Advice(
        f"{SLOW} algorithm=scaffold system.partial=true system.deadline=3",
        "those of apfl, fedavg, .* can$",
        "algorithm=fedavg",
    ),
    Advice(f"{DUAL} system.speed=3", r"^(system\.passes) is missing", "system.passes=2"),
    Advice(f"{LINEAR} stop.simulated_seconds=3", r"only with a table \[system\]", "system.speed=10"),
    Advice(f"{LINEAR} system.speed=3s", "the choices are constant, ", "system.speed=3"),
    Advice(f"{LINEAR} system.latency=50ms", "in seconds that is 0.05$", "system.latency=0.05"),
    Advice(f"{LINEAR} selection.count=3 system.least=5", "at most the 3 clients", "system.least=3"),
    Advice(f"{LINEAR} algorithm=fedavg graph=ring", "the methods on graphs are .*dgd, ", "algorithm=dgd"),
    Advice(f"{LINEAR} algorithm=dgd", r"such as (graph = \"ring\")$"),
    Advice(f"{GRAPH} selection=cyclic", 'so it must be "all" or absent', "selection=all", like=GRAPH),
    Advice(f"{GRAPH} system.dropout=0.1", r"edges may carry nothing: (graph\.loss)$", "-system graph.loss=0.1"),
    Advice(
        f"{GRAPH} system.partial=true",
        r"^system\.partial = true is wrong with a table \[graph\]",
        "-system",
        like=GRAPH,
    ),
    Advice(f"{GRAPH} system.deadline=3 system.speed=10", "no server waits for nodes", "-system.deadline"),
    Advice(f"{GRAPH} algorithm=extra graph.loss=0.1", "needs a graph that does not change", "-graph.loss"),
    Advice(f"{GRAPH} graph=torus graph.rows=4", "it must divide the number of clients, 6$", "graph.rows=2"),
    Advice(f"{GRAPH} graph=torus graph.rows=1", r"which is (graph = \"ring\")$", "-graph.rows graph=ring", like=GRAPH),
    Advice(f"{LOGISTIC} algorithm=fedavg selection=greedy", 'it must be "biased" .*', "selection=biased"),
    Advice(
        f"{LINEAR} algorithm=fednova selection=importance", 'it must be one such as "uniform"$', "selection=uniform"
    ),
    Advice(
        f"{COUNTS} algorithm=fedavg selection=importance",
        r"^(selection\.odds) is missing",
        "selection.odds=[1,2,1,1,1,1]",
    ),
    Advice(
        f"{LINEAR} algorithm=fedavg selection=importance selection.odds=[1,2]",
        "give one to each$",
        "selection.odds=[1,2,1,1,1,1]",
    ),
    Advice(
        f"{LINEAR} algorithm=fedavg selection=importance selection.odds=[1,9,1,1,1,1] selection.power=500",
        r"so selection\.power must be nearer to 0$",
        "selection.power=1",
    ),
    Advice(
        f"{LOGISTIC} algorithm=fedavg evaluate.unseen_steps=3", "without evaluate.unseen: leave it out$", "-evaluate"
    ),
    Advice(
        f'{LOGISTIC} algorithm=fedavg evaluate.unseen=["a"]',
        r"write their numbers, 0 to 5, as in (\[0, 2\])$",
        "evaluate.unseen=[0,2]",
    ),
    Advice(f"{LOGISTIC} algorithm=fedavg evaluate.unseen=0.99", "so leave one at least$", "evaluate.unseen=5"),
    Advice(f"{LOGISTIC} algorithm=fedavg evaluate.unseen=[1,1]", "name each once$", "evaluate.unseen=[1]"),
    Advice(f"{COUNTS} algorithm=fedavg evaluate.unseen=2", r"such as (evaluate\.unseen_step = 0\.1)$"),
    Advice(
        f"{LINEAR} selection=cover selection.s0=1 selection.count=2",
        "it takes at least 3 rounds$",
        "selection.s0=3",
    ),
]
OBJECTIVES = [
    Advice(f"{LINEAR} algorithm=fedavg objective.l1=0.1", "; ad-admm, fedadmm, gd, nesterov can$", "algorithm=gd"),
    Advice(
        f'{LINEAR} algorithm=gd objective.unpenalised=["x0"]',
        r"without objective\.l1 and objective\.l2",
        "objective.l1=0.1",
    ),
    Advice(
        f"{LINEAR} objective.weights=[1,2] algorithm=gd",
        "it must have one for each$",
        "objective.weights=[1,2,1,1,1,1]",
    ),
    Advice(
        f"{LINEAR} algorithm=fedgia algorithm.H=gram objective.weights=[1,2,1,1,1,1]",
        r'it must be "samples" or "clients"; (algorithm\.H = "diagonal") takes all$',
    ),
    Advice(f"{LINEAR} record.personal=true", "has no personal models$", "algorithm=ditto"),
    Advice(f"{LINEAR} stop.accuracy=0.9", "has no classes", "-stop"),
    Advice(f"{LINEAR} stop.objective_gap=0.1", "objective_gap needs optimum", "stop.optimum=0"),
    Advice(
        "data=synthetic problem=softmax data.clients=4 kernels=compiled",
        'so it must be "auto" or "numpy"$',
        "kernels=numpy",
    ),
    Advice(
        f"{LINEAR} start=short.npz",
        "its model has 5 parameters, but the model of this problem .* has 3$",
        "start=three.npz",
    ),
    Advice(f"{LINEAR} start=nodes.npz", r"without a table \[graph\] .* x must be a vector$", "start=three.npz"),
    Advice(
        f"{LOGISTIC} algorithm=fedavg algorithm.certify=true objective.weights=samples",
        'so with algorithm.certify = true it must be "clients"$',
        "objective.weights=clients",
    ),
]
PARTS = [
    Advice(f"{DIGITS} data.clients=2000", "each client needs at least one$", "data.clients=20"),
    Advice(
        f"{DIGITS} data.clients=6 data.partition=sizes data.partition.sizes=[3,4]",
        "give 6 sizes$",
        "data.partition.sizes=[3,4,5,6,7,8]",
    ),
    Advice(
        f"{DIGITS} data.clients=6 data.partition=shards data.partition.pure=true data.partition.per_client=1",
        r"raise (data\.partition\.per_client)$",
        "data.partition.per_client=2",
    ),
    Advice(
        f"{DIGITS} data.clients=6 data.partition=classes data.partition.per_client=20",
        "is too large: there are 10 classes$",
        "data.partition.per_client=10",
    ),
    Advice(
        f"{DIGITS} data.clients=1000 data.partition=iid data.test=0.2",
        r"use fewer clients, or (data\.test = 0\.0) to evaluate on the training samples$",
    ),
    Advice(f"{DIGITS} data.clients=1000 data.partition=iid data.test=0.2", "use fewer clients, or", "data.clients=20"),
    Advice(
        f"{DIGITS} data.clients=40 data.partition=dirichlet data.partition.alpha=0.01 data.partition.least_samples=10",
        r"raise alpha or lower data\.clients = 40$",
        "data.partition.alpha=10",
    ),
    Advice(
        f"{DIGITS} problem=logistic data.clients=6", r"; (problem=softmax) takes them$", like=f"{DIGITS} data.clients=6"
    ),
    Advice(
        "data=matrix.npz algorithm=gd data.clients=6",
        r"or (data\.join = \"y\.npz\") with y in it$",
        like="data=joined.npz algorithm=gd data.clients=6",
    ),
    Advice(
        f"{PLAIN} data.path=tested.npz -data.target -data.client data.test=0.2", "X_test: leave it out$", "-data.test"
    ),
    Advice(f"{PLAIN} data.path=sized.npz -data.target -data.client data.test=site", "give a share$", "data.test=0.2"),
    Advice(
        f"{PLAIN} data.path=sized.npz -data.client", "for CSV and Parquet files only, .* leave it out$", "-data.target"
    ),
    Advice(f"{PLAIN} data.path=sized.npz -data.target -data.client data.clients=3", "leave it out$", "-data.clients"),
    Advice(
        f"{PLAIN} data.path=sparse.svm -data.target -data.client data.clients=4 data.standardise=pooled",
        "leave it out$",
        "-data.standardise",
    ),
    Advice(
        f"{PLAIN} data.path=zero.svm -data.target -data.client data.clients=4 data.zero_based=false",
        r"or from 0 with (data\.zero_based = true)$",
    ),
    Advice(
        f"{DIGITS} data.clients=6 data.partition=sizes data.partition.least=0.999",
        r"is too large for \d+ samples and data\.clients = 6: lower it$",
        "data.partition.least=0.9",
    ),
]
TABLES = [
    Advice(f"{TABLE}commas.csv", r'; (data\.decimal = ",") reads it as 0\.346; for a feature', like=PLAIN),
    Advice(f"{TABLE}mixed.csv", r"columns of categories in (data\.categories)$", 'data.categories=["a"]'),
    Advice(
        f"{TABLE}mixed.csv",
        r"missing values are named in (data\.missing_texts)",
        'data.missing_texts=["low"] data.missing=mean',
    ),
    Advice(f"{TABLE}dates.csv", r'(data\.ignore = \["day"\]) leaves it out', like=PLAIN),
    Advice(f"{TABLE}dates.csv", r'(data\.categories = \["day"\]) makes a level of each$'),
    Advice(f"{TABLE}names.csv", r'different texts in \d+ rows.*: (data\.ignore = \["day"\]) leaves it out', like=PLAIN),
    Advice(
        f"{TABLE}numbered.csv algorithm.gamma=1e-6",
        r"numbers the rows: .* name it in (data\.ignore)",
        'data.ignore=["day"]',
    ),
    Advice(f"{TABLE}gaps.csv", r'; (data\.missing = "drop") leaves out such rows', like=f"{TABLE}whole.csv"),
    Advice(
        f"{TABLE}gaps.csv",
        'such rows, "mean" or "client-mean" fill in means$',
        "data.missing=mean",
        like=f"{TABLE}filled.csv",
    ),
    Advice(
        f"{TABLE}unknown.csv data.missing=mean", r'no known cell: (data\.ignore = \["day"\]) leaves it out$', like=PLAIN
    ),
    Advice(
        f"{TABLE}unknown.csv data.missing=drop",
        r"every row .*; (data\.ignore) leaves columns out$",
        'data.ignore=["day"]',
        like=PLAIN,
    ),
    Advice(
        f"{TABLE}untold.csv data.missing=mean",
        r'which a mean could fill; (data\.missing = "drop") leaves out such',
        like=f"{TABLE}whole.csv",
    ),
    Advice(f"{TABLE}words.csv", "labels are text .*; (problem=logistic) takes them$"),
    Advice(f"{TABLE}zeros.csv algorithm=newton problem=gamma", "; (problem=poisson) takes 0$"),
    Advice(f"{TABLE}classes.csv problem=logistic", "; (problem=softmax) takes them$"),
    Advice(f"{PLAIN} problem=logistic", "; (problem=least-squares) takes them$", like=PLAIN),
    Advice(
        f"{TABLE}classes.csv data.classes=3 problem=logistic", r"data\.classes says 3; (problem=softmax) takes them$"
    ),
    Advice(
        f"{TABLE}classes.csv data.classes=3 problem=cox",
        "they are classes: leave it out$",
        "-data.classes",
        next="time",
    ),
    Advice(
        f"{TABLE}weighed.csv data.frequency=day",
        r"(data\.weight) takes numbers that are not whole$",
        "-data.frequency data.weight=day",
    ),
    Advice(f"{TABLE}weighed.csv data.frequency=day data.weight=day", "give one of them$", "-data.frequency"),
    Advice(
        f"{TABLE}weighed.csv objective.weights=day",
        r"(data\.weight) takes weights of rows$",
        "-objective data.weight=day",
    ),
    Advice(
        f"{TABLE}weighed.csv data.exposure=day",
        r"poisson, gamma do; (data\.offset) takes the logarithms$",
        "-data.exposure data.offset=day",
    ),
    Advice(f"{TABLE}weighed.csv data.weight=day kernels=compiled", 'so it must be "auto"$', "kernels=auto"),
    Advice(f"{PLAIN} data.clients=5", "a column of 4 clients: leave it out$", "-data.clients", like=PLAIN),
    Advice(f"{PLAIN} data.partition=iid", "defines the rows of each: leave it out$", "-data.partition", like=PLAIN),
    Advice(f'{PLAIN} data.categories=["y"]', "which is no feature: take it out$", "-data.categories", like=PLAIN),
    Advice(f'{PLAIN} data.ignore=["y"]', "which is that of the labels: take it out$", "-data.ignore", like=PLAIN),
    Advice(
        f"{TABLE}survival.csv -data.target data.time=t data.event=e data.target=a problem=cox algorithm=newton",
        "which are the label: leave it out$",
        "-data.target",
    ),
    Advice(
        f"{PLAIN} data.standardise=federated evaluate.unseen=1 problem=logistic data.above=0",
        'so it must be "own"$',
        "data.standardise=own",
    ),
    Advice(f"{PLAIN} -data.target", r"(data\.target) must be another one$", "data.target=y", like=PLAIN),
    Advice(
        f'{TABLE}"" -data.client',
        "data.path is empty: give a file, or a list of tables$",
        "data.path=plain.csv data.client=site",
        like=PLAIN,
    ),
    Advice(
        f'{TABLE}["plain.csv","worded.csv"]',
        r'texts in others: for a feature (data\.categories = \["a"\]) takes both$',
    ),
    Advice(f"{PLAIN} problem=softmax", "; (problem=least-squares) takes any numbers$", like=PLAIN),
    Advice(f"{TABLE}last.csv", r'all text; for a feature (data\.categories = \["a"\]) takes both$'),
    Advice(
        f"{TABLE}weighed.csv data.client_weights=day objective.weights=a",
        r"data\.client_weights is \"day\"$",
        "-data.client_weights objective.weights=samples",
    ),
    Advice(f"{PLAIN} data.labels=y", r"^data\.labels cannot be set: .* data\.target \(or", "-data.labels", like=PLAIN),
    Advice(
        f"{TABLE}later.csv data.test=part data.missing=mean",
        r"no training sample in which it is known: name it in (data\.ignore)$",
        'data.ignore=["day"]',
        like=f'{TABLE}later.csv data.test=part data.features=["a","b"]',
    ),
    Advice(
        f"{TABLE}twice.csv algorithm=newton",
        "leave out a column that is given twice",
        'data.ignore=["day"]',
        like=f"{PLAIN} algorithm=newton",
    ),
    Advice(
        f"{TABLE}nothing.csv algorithm=newton",
        "its column is 0 in all rows, .* leave it out$",
        'data.ignore=["day"]',
        like=f"{PLAIN} algorithm=newton",
    ),
    Advice(
        f"{TABLE}large.csv algorithm=newton",
        r"bring columns of different size to one, as (data\.standardise = \"pooled\") does",
    ),
    Advice(
        f"{TABLE}classes.csv algorithm=newton problem=softmax",
        "take bias = false where they are biases, and set the problem's regularisation above 0",
        "problem.bias=false problem.lam=0.1",
    ),
    Advice(
        f"{TABLE}many.csv problem=poisson algorithm=q-fedavg algorithm.lr=0.01 start=warm.npz",
        "take q = 0, or another problem$",
        "algorithm.q=0",
    ),
    Advice(
        f"{TABLE}zeros.csv problem=poisson algorithm=fedavg data.ones=true",
        r"there are two intercepts, .* (problem\.bias = false) has one",
    ),
    Advice(
        f"{TABLE}zeros.csv problem=poisson algorithm=newton data.ones=true",
        "take bias = false where they are biases",
        "problem.bias=false",
    ),
]
ADVISED = [*METHODS, *PRIVACY, *MESSAGES, *CLIENTS, *OBJECTIVES, *PARTS, *TABLES]
