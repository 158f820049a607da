
env.cr.execute("""SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')""")
erp_time = env.cr.fetchone()[0]
action = {'type': 'ir.actions.act_window_close', 'countersign': {'erp_time': erp_time, 'changed': read_changed(known[0], known[1], known[2]) if known else []}}
