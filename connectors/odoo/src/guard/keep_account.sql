
BEGIN
    IF TG_OP = 'UPDATE' AND (NEW.id, NEW.partner_id, NEW.sanitized_acc_number, upper(regexp_replace(NEW.acc_number, '[^[:alnum:]_]+', '', 'g')))
       IS NOT DISTINCT FROM (OLD.id, OLD.partner_id, OLD.sanitized_acc_number, upper(regexp_replace(OLD.acc_number, '[^[:alnum:]_]+', '', 'g'))) THEN
        RETURN NEW;
    END IF;
    IF EXISTS (SELECT 1 FROM countersign_order WHERE (account = OLD.id OR old_account = OLD.id) AND at > clock_timestamp() - interval '30 days') THEN
        RAISE EXCEPTION 'COUNTERSIGN number and owner of an account that Countersign used stay for 30 days: archive it and add another one' USING ERRCODE = '23514';
    END IF;
    IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;
    RETURN NEW;
END
