
DECLARE
    whose int := COALESCE(OLD.partner_id, NEW.partner_id);
    their int := COALESCE(NEW.partner_id, OLD.partner_id);
    -- Odoo keeps the number as it was typed and, a moment after, without what is no part of it.
    typed_was text := upper(regexp_replace(OLD.acc_number, '[^[:alnum:]_]+', '', 'g'));
    typed text := upper(regexp_replace(NEW.acc_number, '[^[:alnum:]_]+', '', 'g'));
    number_was text := COALESCE(OLD.sanitized_acc_number, typed_was);
    number text := COALESCE(NEW.sanitized_acc_number, typed);
BEGIN
    -- Orders about the vendor take turns with whoever edits its accounts, and none decides by what
    -- the other is about to change.
    INSERT INTO countersign_vendor AS known (vendor, turns)
        SELECT vendor, 1 FROM unnest(ARRAY[LEAST(whose, their), GREATEST(whose, their)]) vendor GROUP BY vendor ORDER BY vendor
        ON CONFLICT (vendor) DO UPDATE SET turns = known.turns + 1;
    INSERT INTO countersign_log (who, companies, vendor, account, field, was, became)
    SELECT CASE WHEN NEW.write_date = transaction_timestamp() AT TIME ZONE 'UTC' THEN NEW.write_uid END,
           ARRAY(SELECT company_id FROM account_move
                  WHERE move_type IN ('in_invoice', 'in_refund', 'in_receipt')
                    AND partner_id IN (SELECT whose UNION SELECT id FROM res_partner WHERE commercial_partner_id = whose)
                 UNION SELECT company FROM countersign_order WHERE vendor = whose),
           whose, COALESCE(OLD.id, NEW.id), told.field, told.was, told.became
      FROM (VALUES
           (1, 'INSERT', 'added', NULL, number),
           (2, 'DELETE', 'removed', number_was, NULL),
           (3, 'UPDATE', 'number', number_was, number),
           -- What people see can be made another number than what is compared.
           (4, CASE WHEN number_was = number AND typed <> number THEN 'UPDATE' END, 'number', typed_was, typed),
           (5, 'UPDATE', 'owner', OLD.partner_id::text, NEW.partner_id::text),
           (6, 'UPDATE', 'activity', CASE WHEN OLD.active THEN 'active' ELSE 'archived' END, CASE WHEN NEW.active THEN 'active' ELSE 'archived' END),
           (7, 'UPDATE', 'order', OLD.sequence::text, NEW.sequence::text),
           (8, 'UPDATE', 'trust', CASE WHEN OLD.allow_out_payment THEN 'allowed' ELSE 'barred' END, CASE WHEN NEW.allow_out_payment THEN 'allowed' ELSE 'barred' END),
           -- Odoo fills the holder in after it created the account.
           (9, CASE WHEN OLD.acc_holder_name IS NOT NULL OR OLD.create_date <> transaction_timestamp() AT TIME ZONE 'UTC' THEN 'UPDATE' END,
            'holder', OLD.acc_holder_name, NEW.acc_holder_name)
           ) told(place, op, field, was, became)
     WHERE told.op = TG_OP AND told.was IS DISTINCT FROM told.became
     ORDER BY told.place;
    RETURN NULL;
END
