# What is installed, as the database holds it; the caller knows what it should be. Run by the reader.
told = env.context.get('countersign')
if not isinstance(told, dict) or not isinstance(told.get('store'), str):
    raise UserError('COUNTERSIGN bad_request')
env.cr.execute("""
    SELECT json_build_object(
        'erp_time', to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
        'database', current_database(),
        'installed_in', coalesce((SELECT value FROM ir_config_parameter WHERE key = 'countersign.installed_in'), ''),
        'uuid', coalesce((SELECT value FROM ir_config_parameter WHERE key = 'database.uuid'), ''),
        'key_halves', (SELECT count(*) FROM ir_config_parameter WHERE key IN ('countersign.seal_inner', 'countersign.seal_outer') AND value ~ '^[0-9a-f]{128}$'),
        'newest_seq', (SELECT coalesce(max(seq), 0) FROM countersign_order WHERE store = %s),
        'models_of_table', (SELECT count(*) FROM ir_model WHERE replace(model, '.', '_') = 'countersign_order'),
        'constraints', (SELECT coalesce(json_agg(pg_get_constraintdef(oid)), '[]') FROM pg_constraint WHERE conrelid IN ('countersign_order'::regclass, 'countersign_turn'::regclass)),
        'actions', (SELECT coalesce(json_agg(json_build_object(
            'name', a.name->>'en_US', 'state', a.state, 'code', encode(sha256(convert_to(coalesce(a.code, ''), 'UTF8')), 'hex'),
            'groups', (SELECT coalesce(json_agg(g.name->>'en_US' ORDER BY g.id), '[]') FROM ir_act_server_group_rel r JOIN res_groups g ON g.id = r.gid WHERE r.act_id = a.id))), '[]')
            FROM ir_act_server a WHERE a.name->>'en_US' LIKE 'Countersign%%'),
        'triggers', (SELECT coalesce(json_agg(json_build_object(
            'definition', pg_get_triggerdef(t.oid), 'enabled', t.tgenabled::text, 'body', encode(sha256(convert_to(p.prosrc, 'UTF8')), 'hex'))), '[]')
            FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid WHERE t.tgname ~ '^countersign'),
        'rules', (SELECT coalesce(json_agg(json_build_object(
            'name', u.name, 'model', m.model, 'domain', u.domain_force, 'active', u.active, 'global', u.global,
            'write', u.perm_write, 'unlink', u.perm_unlink)), '[]')
            FROM ir_rule u JOIN ir_model m ON m.id = u.model_id WHERE u.name LIKE 'Countersign%%'),
        'groups', (SELECT coalesce(json_agg(json_build_object(
            'name', g.name->>'en_US',
            'implied', (SELECT coalesce(json_agg(d.module || '.' || d.name ORDER BY d.module, d.name), '[]')
                          FROM res_groups_implied_rel i JOIN ir_model_data d ON d.model = 'res.groups' AND d.res_id = i.hid WHERE i.gid = g.id),
            'logins', (SELECT coalesce(json_agg(u.login ORDER BY u.login), '[]') FROM res_groups_users_rel r JOIN res_users u ON u.id = r.uid WHERE r.gid = g.id AND u.active))), '[]')
            FROM res_groups g WHERE g.name->>'en_US' LIKE 'Countersign%%')
    )::text
""", [told['store']])
action = {'type': 'ir.actions.act_window_close', 'countersign': env.cr.fetchone()[0]}
