# Every answer is also one JSON document in SI units: what do switches that reduce buy, at which size?
for switch in --nvls --no-nvls; do
    commsim cost hgx-h100 all_reduce --sizes 1MiB..1GiB --factor 32 $switch --json | python -c '
import json, sys
for row in json.load(sys.stdin):
    print(sys.argv[1], row["size_bytes"], row["algorithm"], round(row["busbw_bytes_per_s"] / 1e9), "GB/s")
' $switch
done
