import { TextInput, type TextInputProps } from '@mantine/core';
import { useDebouncedCallback } from '@mantine/hooks';
import { IconSearch } from '@tabler/icons-react';
import { useState } from 'react';

type Props = Omit<TextInputProps, 'value' | 'onChange'> & { value: string; onChange: (value: string) => void };

/** A text that is applied when typing pauses. A value from elsewhere, such as the address, replaces it. */
export function LateInput({ value, onChange, ...rest }: Props) {
  const [typed, setTyped] = useState(value);
  const [taken, setTaken] = useState(value);
  const [known, setKnown] = useState(value);
  if (value !== known) {
    setKnown(value);
    if (value !== taken) setTyped(value);
  }
  const take = useDebouncedCallback(
    (next: string) => {
      setTaken(next);
      onChange(next);
    },
    { delay: 400, flushOnUnmount: false },
  );
  return (
    <TextInput
      className="th-filter"
      autoComplete="off"
      maxLength={100}
      {...rest}
      value={typed}
      onChange={({ currentTarget: { value: next } }) => {
        setTyped(next);
        take(next.trim());
      }}
    />
  );
}

/** The same to search a list for words. */
export function SearchInput(props: Props) {
  return <LateInput type="search" placeholder="Words" leftSection={<IconSearch size={16} aria-hidden />} {...props} />;
}
