"""Building blocks of methods, which import from here and from ``mpifed.extend``; names are loaded when first used.

- states: ``Client`` of methods whose clients keep nothing, ``Server`` of those that keep the model alone
- bases: ``CompressedDifferences``, ``CompressedGradients`` (with ``COMPRESSED_UPLOAD``, what they upload),
  ``DualMethod``, ``InexactADMM``, ``LearnedHessians`` (with ``REGULAR_HESSIAN``, what they need beside Hessians),
  ``LocalEpochs``, ``NoisyAlgorithm``, ``Personal``
- traits beside those of ``mpifed.extend``: ``PlotStyle``, ``Theorem``, ``Privacy``, ``RecordValues``; what a method
  with its options needs: ``required_methods``, ``further_requirements``
- types of options: ``PositiveFloat``, ``PositiveInt``, ``PositiveNumber``, ``UnitFraction``, ``BatchSize``,
  ``LastBatch``, ``LocalIterations``, ``StepSize``, ``GraphStepSize``, ``Rate``, whose number in a round is
  ``rate_at``; ``to_tune`` marks the one to change first
- components: ``Step``, ``Optimizer``, ``ServerOptimizer`` and ``Solver`` with members that are defaults of methods
- local steps: ``minibatch``, ``count_steps``, ``count_gradients``
- FedGiA: ``MetricChoice``, ``METRIC_REQUIRES``, ``invert_metric``, ``PenaltyFactor``, ``AdaptiveChoice``,
  ``AdaptiveServer``
- noise: ``NOISES`` by their names, ``NoiseChoice``, ``UnprovenNoise``, ``NoiseSeed``, ``GaussianMechanism``,
  ``DRAWN_ANEW`` (promises that hold where no seed repeats the noise), ``count_replayed_uploads``
- numbers: ``squared_norms``, ``row_norms``, ``soft``, ``elastic_net_mean``, packed symmetric matrices (``pack``,
  ``unpack``), Newton steps (``newton_direction``, ``backtrack`` down to ``SMALLEST_STEP``, ``ROUNDING`` in units of the
  last place), ``namespace`` of an array
"""

from mpifed.core.members import lazy_stub

__getattr__, __dir__, __all__ = lazy_stub(__name__, __file__)
