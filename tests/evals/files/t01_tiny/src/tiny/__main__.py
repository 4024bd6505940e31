import json

import tiny

print(json.dumps({"values": tiny.run()}))
