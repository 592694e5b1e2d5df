import type { SyntheticEvent } from 'react';

const selectText = ({ currentTarget }: SyntheticEvent<HTMLInputElement>) => currentTarget.select();

/** Makes typing into a searchable select replace its current choice. A click would otherwise move the cursor. */
export const selectsText = { onFocus: selectText, onClick: selectText };
