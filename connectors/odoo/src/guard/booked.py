
env.cr.execute("""SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')""")
erp_time = env.cr.fetchone()[0]
booked = read_back(payment_id, bill) if payment_id else []
action = {'type': 'ir.actions.act_window_close', 'countersign': {'erp_time': erp_time, 'booked': booked}}
