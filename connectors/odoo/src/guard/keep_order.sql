
BEGIN
    RAISE EXCEPTION 'COUNTERSIGN what was booked stays on record' USING ERRCODE = '23514';
END
