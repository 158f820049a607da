
DECLARE
    whose int := OLD.id;
BEGIN
    -- A contact person of somebody else's is no vendor and becomes none.
    IF TG_OP = 'UPDATE' AND OLD.parent_id IS NOT DISTINCT FROM NEW.parent_id AND OLD.commercial_partner_id IS NOT DISTINCT FROM NEW.commercial_partner_id
       AND OLD.parent_id IS NOT NULL AND OLD.commercial_partner_id <> OLD.id THEN
        RETURN NULL;
    END IF;
    INSERT INTO countersign_log (who, companies, vendor, field, was, became)
    SELECT CASE WHEN NEW.write_date = transaction_timestamp() AT TIME ZONE 'UTC' THEN NEW.write_uid END,
           ARRAY(SELECT company_id FROM account_move
                  WHERE move_type IN ('in_invoice', 'in_refund', 'in_receipt')
                    AND partner_id IN (SELECT whose UNION SELECT id FROM res_partner WHERE commercial_partner_id = whose)
                 UNION SELECT company FROM countersign_order WHERE vendor = whose),
           whose, told.field, told.was, told.became
      FROM (VALUES
           (1, 'UPDATE', 'name', OLD.name, NEW.name),
           (2, 'UPDATE', 'tax_number', OLD.vat, NEW.vat),
           (3, 'UPDATE', 'parent', OLD.parent_id::text, NEW.parent_id::text),
           -- Who stands for it can be written without the other, and counts as much.
           (4, CASE WHEN OLD.parent_id IS NOT DISTINCT FROM NEW.parent_id AND OLD.commercial_partner_id IS NOT NULL THEN 'UPDATE' END, 'parent', OLD.commercial_partner_id::text, NEW.commercial_partner_id::text),
           (5, 'UPDATE', 'phone', OLD.phone, NEW.phone),
           (6, 'UPDATE', 'mobile', OLD.mobile, NEW.mobile),
           (7, 'DELETE', 'vendor', OLD.id::text, NULL)
           ) told(place, op, field, was, became)
     WHERE told.op = TG_OP AND NULLIF(told.was, '') IS DISTINCT FROM NULLIF(told.became, '')
     ORDER BY told.place;
    RETURN NULL;
END
