# The orders of one store, from the table that no model reaches. Run by the payer: markers are in it.
told = env.context.get('countersign')
if not isinstance(told, dict) or not isinstance(told.get('store'), str) or not isinstance(told.get('after'), str) or not isinstance(told.get('limit'), int):
    raise UserError('COUNTERSIGN bad_request')
if not told['after'] or len(told['after']) > 18 or told['after'].strip('0123456789') or not 0 <= told['limit'] <= 65535:
    raise UserError('COUNTERSIGN bad_request')
env.cr.execute("""
    SELECT coalesce(json_agg(json_build_object(
               'marker', marker, 'seq', seq, 'company', company::text, 'bill', bill::text, 'account', account::text, 'iban', iban, 'amount', amount::text,
               'total', total::text, 'currency', currency, 'payment', payment::text,
               'at', to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')) ORDER BY seq), '[]')::text
      FROM (SELECT * FROM countersign_order WHERE kind = 'payment' AND store = %s AND seq > %s::bigint ORDER BY seq LIMIT %s) page
""", [told['store'], told['after'], told['limit']])
action = {'type': 'ir.actions.act_window_close', 'countersign': env.cr.fetchone()[0]}
