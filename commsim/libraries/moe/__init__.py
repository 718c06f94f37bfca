"""How long do dispatch and combine take, by which kernels?"""

from commsim.libraries.moe.exchange import Exchange as Exchange
from commsim.libraries.moe.exchange import exchange as exchange
from commsim.libraries.moe.exchange import moe_times as moe_times
