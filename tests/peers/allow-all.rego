# Everything may run: what is left is the proxy itself.
package countersign.capability

import rego.v1

decision := {"rule": "all", "decision": "allow", "reason": "OK"}
