# Your own machine: say what it is like, and what differs.
cd "$(mktemp -d)"
cat > ours.yaml <<'YAML'
like: hgx-h100
title: Our boxes, with half of the NICs
node:
  parts:
    nic: {count: 4}
scale_out:
  oversubscription: 2
YAML
commsim cost ours.yaml all_to_all --nodes 16 --sizes 1MiB..1GiB --factor 32
