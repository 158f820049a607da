
BEGIN
    RAISE EXCEPTION 'COUNTERSIGN what was changed stays on record' USING ERRCODE = '23514';
END
