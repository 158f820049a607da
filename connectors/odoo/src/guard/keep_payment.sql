
BEGIN
    IF NOT EXISTS (SELECT 1 FROM countersign_order WHERE payment = OLD.id) THEN
        IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;
        RETURN NEW;
    END IF;
    IF TG_OP = 'DELETE' THEN
        RAISE EXCEPTION 'COUNTERSIGN a payment that Countersign booked cannot be deleted' USING ERRCODE = '23514';
    END IF;
    IF (NEW.id, NEW.move_id, NEW.partner_bank_id, NEW.amount, NEW.currency_id, NEW.partner_id, NEW.payment_type)
       IS DISTINCT FROM (OLD.id, OLD.move_id, OLD.partner_bank_id, OLD.amount, OLD.currency_id, OLD.partner_id, OLD.payment_type) THEN
        RAISE EXCEPTION 'COUNTERSIGN account, amount, currency and vendor of a payment that Countersign booked stay' USING ERRCODE = '23514';
    END IF;
    RETURN NEW;
END
