"""What are the rows of a lab: what was measured, beside what the model says?"""

from __future__ import annotations

import numpy as np

from commsim.lab.experiment import Compared
from commsim.lab.faults import written
from commsim.tables.records import Record, records

_SHARES = (0.5, 0.9)


@records.register
def _compared(one: Compared) -> list[Record]:
    asked, prediction = one.trial.asked, one.trial.prediction
    ranks = asked.layout.size
    return [
        {
            "op": asked.op.name,
            "ranks": ranks,
            "groups": asked.layout.groups,
            "size_bytes": int(asked.size),
            "fault": written(one.trial.fault),
            "measured_s": one.typical,
            "predicted_s": prediction.typical,
            "error": one.error,
            "algbw_bytes_per_s": asked.size / one.typical,
            "busbw_bytes_per_s": asked.size / one.typical * asked.op.factor(ranks),
            "samples_s": one.seconds.tolist(),
            "measured_p50_p90_s": np.quantile(one.seconds, _SHARES).tolist(),
            "predicted_p50_p90_s": np.quantile(prediction.seconds, _SHARES).tolist(),
            "checked": one.checked,
        }
    ]
