# A page of the log of changes to vendors and accounts, of one company. Run by the reader.
told = env.context.get('countersign')
if not isinstance(told, dict) or any(not isinstance(told.get(name), str) or not told[name] or told[name].strip('0123456789') for name in ('company', 'after')) or not isinstance(told.get('limit'), int):
    raise UserError('COUNTERSIGN bad_request')
if len(told['company']) > 9 or len(told['after']) > 18 or not 0 <= told['limit'] <= 65535:
    raise UserError('COUNTERSIGN bad_request')
# A vendor is of every company that has a bill of its now, had one when it was changed, or ordered about
# it; one that nobody has a bill of is everybody's, or an edit in between would be nobody's.
env.cr.execute("""
    SELECT coalesce(json_agg(json_build_object(
               'id', id, 'at', to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), 'by', login, 'vendor', vendor::text, 'account', account::text,
               'field', field, 'before', was, 'after', became, 'ordered', ordered) ORDER BY id), '[]')::text
      FROM (SELECT l.*, u.login, EXISTS (SELECT 1 FROM countersign_order o WHERE o.tx = l.tx AND o.begun = l.begun AND o.kind = 'bank_change' AND o.vendor = l.vendor) AS ordered
              FROM countersign_log l LEFT JOIN res_users u ON u.id = l.who
                   CROSS JOIN LATERAL (SELECT ARRAY(
                       SELECT m.company_id FROM account_move m
                        WHERE m.move_type IN ('in_invoice', 'in_refund', 'in_receipt')
                          AND m.partner_id IN (SELECT l.vendor UNION SELECT p.id FROM res_partner p WHERE p.commercial_partner_id = l.vendor))) billed(companies)
             WHERE l.id > %s::bigint
               AND (%s::int = ANY (l.companies || billed.companies) OR l.companies || billed.companies = ARRAY[]::int[])
             ORDER BY l.id LIMIT %s) page
""", [told['after'], told['company'], told['limit']])
action = {'type': 'ir.actions.act_window_close', 'countersign': env.cr.fetchone()[0]}
