import { TagsInput as MantineTagsInput, type TagsInputProps } from '@mantine/core';
import { useState } from 'react';
import { usePress } from './actions/press.ts';

type Props = Omit<TagsInputProps, 'value' | 'onChange' | 'onBlur' | 'searchValue' | 'onSearchChange'> & {
  value: string[];
  onChange: (value: string[]) => void;
  onLeave?: () => void;
};

/** Input for a list of texts. Text that was not confirmed with Enter is added when the field loses focus. */
export function TagsInput({ value, onChange, onLeave, ...rest }: Props) {
  const { beforeClick } = usePress();
  const [typed, setTyped] = useState('');
  const leave = () =>
    beforeClick(() => {
      const text = typed.trim();
      setTyped('');
      if (text !== '' && !value.includes(text)) onChange([...value, text]);
      onLeave?.();
    });
  return (
    <MantineTagsInput
      {...rest}
      value={value}
      onChange={onChange}
      searchValue={typed}
      onSearchChange={setTyped}
      acceptValueOnBlur={false}
      onBlur={leave}
    />
  );
}
