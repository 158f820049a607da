# What is installed, as the database holds it; the caller knows what it should be. Run by the reader.
told = env.context.get('countersign')
if not isinstance(told, dict) or not isinstance(told.get('store'), str):
    raise UserError('COUNTERSIGN bad_request')

# Templates that somebody wrote who is no administrator, and in which an expression stands that is run
# with every right there is. One that was written before only editors could still runs.
env.cr.execute("""SELECT array_agg(t) FROM unnest(ARRAY['mail_template', 'sms_template']) t WHERE to_regclass(t) IS NOT NULL""")
templates = []
for table in env.cr.fetchone()[0] or []:
    env.cr.execute("""
        SELECT coalesce(json_agg(t.id ORDER BY t.id), '[]') FROM """ + table + """ t
         WHERE EXISTS (
               SELECT 1 FROM jsonb_each(to_jsonb(t)) field, LATERAL (
                      SELECT field.value #>> '{}' WHERE jsonb_typeof(field.value) = 'string'
                      UNION ALL SELECT value FROM jsonb_each_text(CASE WHEN jsonb_typeof(field.value) = 'object' THEN field.value ELSE '{}' END)) written(words)
                WHERE written.words ~* '[{]{2}|(^|[^a-z0-9_-])t-[^[:space:]=<>"'']*[[:space:]]*=')
           AND EXISTS (SELECT 1 FROM unnest(ARRAY[t.create_uid, t.write_uid]) writer(id)
                        WHERE writer.id IS DISTINCT FROM 1 AND NOT EXISTS (
                              SELECT 1 FROM res_groups_users_rel r JOIN ir_model_data d ON d.model = 'res.groups' AND d.res_id = r.gid
                               WHERE r.uid = writer.id AND d.module = 'base' AND d.name = 'group_system'))
    """)
    templates += [table.replace('_', '.') + ' ' + str(found) for found in env.cr.fetchone()[0]]

env.cr.execute("""
    WITH editor AS (SELECT res_id AS id FROM ir_model_data WHERE model = 'res.groups' AND module = 'mail' AND name = 'group_mail_template_editor'),
         administrator AS (SELECT res_id AS id FROM ir_model_data WHERE model = 'res.groups' AND module = 'base' AND name = 'group_system')
    SELECT json_build_object(
        'erp_time', to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
        'database', current_database(),
        'installed_in', coalesce((SELECT value FROM ir_config_parameter WHERE key = 'countersign.installed_in'), ''),
        'uuid', coalesce((SELECT value FROM ir_config_parameter WHERE key = 'database.uuid'), ''),
        'key_halves', (SELECT count(*) FROM ir_config_parameter WHERE key IN ('countersign.seal_inner', 'countersign.seal_outer') AND value ~ '^[0-9a-f]{128}$'),
        'templates_restricted', coalesce((SELECT value FROM ir_config_parameter WHERE key = 'mail.restrict.template.rendering'), ''),
        'editor_in', (SELECT coalesce(json_agg(g.name->>'en_US' ORDER BY g.id), '[]') FROM res_groups_implied_rel i JOIN res_groups g ON g.id = i.gid
            WHERE i.hid IN (SELECT id FROM editor) AND i.gid NOT IN (SELECT id FROM administrator)),
        'editors', (SELECT coalesce(json_agg(u.login ORDER BY u.login), '[]') FROM res_groups_users_rel r JOIN res_users u ON u.id = r.uid
            WHERE r.gid IN (SELECT id FROM editor) AND u.active AND u.id <> 1
              AND NOT EXISTS (SELECT 1 FROM res_groups_users_rel a WHERE a.uid = u.id AND a.gid IN (SELECT id FROM administrator))
              AND NOT EXISTS (SELECT 1 FROM res_groups_users_rel a JOIN res_groups_implied_rel i ON i.gid = a.gid WHERE a.uid = u.id AND i.hid IN (SELECT id FROM editor))),
        'templates', to_jsonb(%s::text[]),
        'newest_seq', (SELECT coalesce(max(seq), 0) FROM countersign_order WHERE store = %s),
        'models_of_table', (SELECT count(*) FROM ir_model WHERE replace(model, '.', '_') IN ('countersign_order', 'countersign_turn', 'countersign_vendor', 'countersign_log')),
        'constraints', (SELECT coalesce(json_agg(pg_get_constraintdef(oid)), '[]') FROM pg_constraint WHERE conrelid IN (to_regclass('countersign_order'), to_regclass('countersign_turn'), to_regclass('countersign_vendor'), to_regclass('countersign_log'))),
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
""", [templates, told['store']])
action = {'type': 'ir.actions.act_window_close', 'countersign': env.cr.fetchone()[0]}
