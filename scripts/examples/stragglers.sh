# What do one GPU at 1.3 times the time, and pauses of garbage collectors, cost a job of 256 H100s; and what would help?
commsim stragglers llama3.1-70b hgx-h100 --nodes 32 --plan tensor=8,pipeline=4,data=8 --global-batch 64 --steps 1000 \
    --cause "slow-rank: factor=1.3 ranks=77" --cause "pause: every=70" --cause "variation: sigma=0.02" \
    --mitigate planned-gc --mitigate "spares: count=8"
