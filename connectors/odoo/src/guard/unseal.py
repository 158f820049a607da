# The order, if its seal covers exactly its text. A database error inside an action would be reported as
# an unforeseen fault, which proves nothing to the caller; so all that can be foreseen is refused in words.
told = env.context.get('countersign')
if not isinstance(told, dict) or not isinstance(told.get('order'), str) or not isinstance(told.get('seal'), str) or len(told['order'].encode()) > 4000:
    raise UserError('COUNTERSIGN bad_request')

# HMAC-SHA256 over the exact text, from the two padded halves of the key. The key is read by the
# database alone: it is in no code, no variable and no parameter of a statement.
env.cr.execute("""
    SELECT encode(sha256(decode(o.value, 'hex') || sha256(decode(i.value, 'hex') || convert_to(%s, 'UTF8'))), 'hex') = %s,
           encode(sha256(convert_to(%s, 'UTF8')), 'hex')
      FROM ir_config_parameter o, ir_config_parameter i
     WHERE o.key = 'countersign.seal_outer' AND i.key = 'countersign.seal_inner'
""", [told['order'], told['seal'], told['order']])
row = env.cr.fetchone()
if not row or row[0] is not True:
    raise UserError('COUNTERSIGN bad_seal')
digest = row[1]

# Only what was sealed is parsed at all.
env.cr.execute('SELECT %s::jsonb', [told['order']])
order = env.cr.fetchone()[0]
