"""Get Table ACL and Set Table ACL: the stored access policies of a table.

https://learn.microsoft.com/rest/api/storageservices/get-table-acl
"""

from storage.domain.access.policies_xml import read_identifiers, write_identifiers
from storage.domain.errors import UnsupportedHttpVerb
from storage.domain.values.names import fold_table_name
from storage.protocol.call import Answer, Call


async def table_acl(call: Call) -> Answer:
    """At versions before the first that had policies, too: who asks can read the answer."""
    table = fold_table_name(call.target.table)
    match call.method:
        case "GET":
            identifiers = await call.service.policies(call.account, table)
            return Answer(200, [(b"Content-Type", b"application/xml")], write_identifiers(identifiers))
        case "PUT":
            identifiers = read_identifiers(call.body)
            await call.service.replace_policies(call.account, table, identifiers, by=call.actor())
            return Answer(204, [])
    raise UnsupportedHttpVerb(Allow="GET, PUT")
