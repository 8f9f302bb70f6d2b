select brin_summarize_new_values('readings_at_idx');
