# What should all-reduce deliver in one box, and over the network? By which algorithm, limited by what?
commsim cost hgx-h100 all_reduce --sizes 1KiB..8GiB --factor 8
echo
commsim cost hgx-h100 all_reduce --sizes 1KiB..8GiB --factor 8 --nodes 32
echo
commsim cost gb200-nvl72 all_reduce --size 1GiB --all
