import json

import tiny

print(json.dumps({"numeric": {"values": tiny.run()}, "trap": {"runs-twice": tiny.run() == tiny.run()}}))
