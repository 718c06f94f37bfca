"""How long do dispatch and combine take, by which kernels?"""

from commsim.libraries.moe.machine import combine as combine
from commsim.libraries.moe.machine import dispatch as dispatch
from commsim.libraries.moe.timing import Exchange as Exchange
from commsim.libraries.moe.timing import MoeTimes as MoeTimes
from commsim.libraries.moe.timing import Where as Where
from commsim.libraries.moe.timing import exchange as exchange
from commsim.libraries.moe.timing import moe_times as moe_times
