# How long is a step of Llama 3.1 405B on 16,384 H100? The plan is that of the Llama 3 report (Llama Team 2024, table 4).
commsim estimate llama3.1-405b hgx-h100 --gpus 16384 --plan tensor=8,pipeline=16,data=128 --virtual-stages 8 \
    --global-batch 2048 --zero 2 --explain tensor
