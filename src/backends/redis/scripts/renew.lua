if count_held(owner) < parts then return { 'lost' } end
return rearm()
