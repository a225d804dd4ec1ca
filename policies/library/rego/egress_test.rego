package countersign.library.egress_test

import rego.v1

import data.countersign.library.egress

shape(hosts) := {"hosts": hosts, "urls": [], "complete": true}

patterns := ["api.good.com", "*.docs.org"]

test_hosts_in_the_list_pass if {
	egress.verdict(shape(["api.good.com", "a.docs.org"]), patterns).decision == "allow"
	egress.verdict(shape([]), patterns).decision == "allow"
}

test_others_do_not if {
	every host in ["good.com", "docs.org", "xdocs.org", "api.good.com.evil.net", "10.0.0.1"] {
		egress.verdict(shape([host]), patterns).reason == "egress_denied"
	}
}

test_what_cannot_be_told_is_refused if {
	egress.verdict({}, patterns).reason == "egress_unclear"
	cut := {"hosts": [], "urls": [], "complete": false}
	egress.verdict(cut, patterns).reason == "egress_unclear"
	odd := {"hosts": [], "urls": [{"at": "/url", "unclear": "a user name"}], "complete": true}
	egress.verdict(odd, patterns).reason == "egress_unclear"
}
