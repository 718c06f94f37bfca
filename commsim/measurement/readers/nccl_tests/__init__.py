"""What do the logs of nccl-tests and rccl-tests say, of every generation?"""
