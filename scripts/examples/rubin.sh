# The same model on machines that nobody has yet: results are ranges, because figures are.
commsim estimate llama3.1-405b vr-nvl72 --gpus 2304 --plan tensor=8,pipeline=9,data=32 --virtual-stages 7 --global-batch 2048
