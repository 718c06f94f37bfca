"""How long is a step, what makes it so long, and where are the figures from?"""

import commsim as cs

machine = cs.load("hgx-h100", nodes=32)  # 256 GPUs
plan = cs.Plan(cs.Tensor(8), cs.Data(8), cs.Pipeline(4))  # innermost first: the order is the placement
step = cs.estimate(cs.model("llama3.1-70b"), plan, machine, global_batch=256)
print(step)
print(step.explain("tensor"))
print(step.sources())
print(cs.to_frame(cs.sweep("all_reduce", machine, "1MiB..1GiB"))[["size_bytes", "busbw_bytes_per_s", "algorithm"]])
