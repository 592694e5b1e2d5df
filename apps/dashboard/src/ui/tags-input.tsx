import { TagsInput as MantineTagsInput, type TagsInputProps } from '@mantine/core';
import { useState } from 'react';
import { usePress } from './actions/press.ts';

type Props = Omit<TagsInputProps, 'value' | 'onChange' | 'onBlur' | 'searchValue' | 'onSearchChange'> & {
  value: string[];
  onChange: (value: string[]) => void;
  onFieldBlur?: () => void;
};

/** Input for a list of texts. Text that was not confirmed with Enter is added when the field loses focus. */
export function TagsInput({ value, onChange, onFieldBlur, ...rest }: Props) {
  const { beforeClick } = usePress();
  const [searchText, setSearchText] = useState('');
  const leave = () =>
    beforeClick(() => {
      const text = searchText.trim();
      setSearchText('');
      if (text !== '' && !value.includes(text)) onChange([...value, text]);
      onFieldBlur?.();
    });
  return (
    <MantineTagsInput
      {...rest}
      value={value}
      onChange={onChange}
      searchValue={searchText}
      onSearchChange={setSearchText}
      acceptValueOnBlur={false}
      onBlur={leave}
    />
  );
}
