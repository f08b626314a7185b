"""What a method could once say of itself in other words, and what takes their place; () after what was a method."""

NEEDS = 'requires = (Need("hess"), …) says what it needs of a problem'
SPARED = 'requires = (Need("lipschitz", unless=("gamma",)), …) says so'
TAKES = "takes = Takes.SELECTED, TWICE, ALL, SELECTED_AND_ALL or SELECTED_OR_ALL says so"
UNEQUAL = "mean = Mean.UNBIASED, Mean.COUPLED or Refused(why) says so"
KEPT = 'upload = Upload(kept="field", when={options}) says so'
RECORD = 'record(f, client, x) returns them by name, {"name": Sum(values)}'
GREATEST = 'record(f, client, x) returns them by name, {"name": Max(values)}'
ON_GRAPHS = "a method without a server is derived from GraphMethod"

GONE = {
    "needs()": NEEDS,
    "demands": 'requires = (Need("hess", also="what else"), …) says so',
    "spares": SPARED,
    "selections": TAKES,
    "draws()": TAKES,
    "everyone": TAKES,
    "sometimes": TAKES,
    "vectors": "upload = Upload(vectors=2) says so",
    "uploads_models": 'upload = Upload(kind="model", "change" or "gradient") says so',
    "uploaded": 'upload = Upload(known="field") says so',
    "feedback": 'upload = Upload(feedback="error") says so',
    "uncompressed": 'upload = Upload(exact={"down": why}) says so',
    "lasting": KEPT,
    "uses_last()": KEPT,
    "uneven": UNEQUAL,
    "unequal()": UNEQUAL,
    "coupled": UNEQUAL,
    "synchronous": "asynchronous = True or Refused(why) says so",
    "graph": ON_GRAPHS,
    "steady": f"{ON_GRAPHS}, with fixed_weights = why",
    "watches": RECORD,
    "watch()": RECORD,
    "extremes": GREATEST,
    "extreme()": GREATEST,
    "personal": "a method personalised(f, client) says so",
    "moves_duals": "a method score_move says so",
    "coin": "a method units() returns how many times work a round takes on average",
    "fewest": "verify(selected) refuses fewer",
    "tuned_by": 'the option itself says so, by extra={"tuned": True} in its Meta',
    "steering()": 'the option to change says so, by extra={"tuned": True} in its Meta',
}
