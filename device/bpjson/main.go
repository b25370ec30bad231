// SPDX-License-Identifier: Apache-2.0

// Command bpjson reads Android.bp files with blueprint's parser, and prints what they say as JSON.
//
// The names of the files are on stdin, with a NUL between them; a line of JSON for each is on stdout, in
// the same order. Modules are printed with the properties that the arguments name, or with all where a *
// is in front of the file's name. Nothing is evaluated: drwatool/blueprint.py does that, which also
// compiles this program.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"reflect"
	"runtime"
	"strings"

	"github.com/google/blueprint/parser"
)

type definition struct {
	Assigned string `json:"assigned,omitempty"` // a variable
	Operator string `json:"operator,omitempty"` // = or +=
	Value    any    `json:"value,omitempty"`

	Module     string `json:"module,omitempty"` // a module's type
	Line       int    `json:"line"`
	Properties any    `json:"properties,omitempty"`
}

type result struct {
	File  string       `json:"file"`
	Error string       `json:"error,omitempty"`
	Defs  []definition `json:"definitions"`
}

func main() {
	log.SetFlags(0)
	names, err := io.ReadAll(os.Stdin)
	if err != nil {
		log.Fatal(err)
	}
	wanted := make(map[string]bool)
	for _, name := range os.Args[1:] {
		wanted[name] = true
	}
	out := bufio.NewWriter(os.Stdout)
	free := make(chan struct{}, runtime.NumCPU())
	var pending []chan []byte
	for _, name := range strings.Split(string(names), "\x00") {
		name, line := name, make(chan []byte, 1)
		pending = append(pending, line)
		go func() {
			free <- struct{}{}
			defer func() { <-free }()
			if strings.HasPrefix(name, "*") {
				line <- encode(read(name[1:], nil))
			} else {
				line <- encode(read(name, wanted))
			}
		}()
	}
	for _, line := range pending {
		if _, err := out.Write(append(<-line, '\n')); err != nil {
			log.Fatal(err)
		}
	}
	if err := out.Flush(); err != nil {
		log.Fatal(err)
	}
}

func encode(found result) []byte {
	line, err := json.Marshal(found)
	if err != nil {
		log.Fatal(err)
	}
	return line
}

func read(name string, wanted map[string]bool) result {
	found := result{File: name}
	file, err := os.Open(name)
	if err != nil {
		found.Error = err.Error()
		return found
	}
	defer file.Close()
	parsed, errs := parse(name, file)
	if len(errs) > 0 {
		found.Error = errs[0].Error()
		return found
	}
	for _, def := range parsed.Defs {
		switch def := def.(type) {
		case *parser.Assignment:
			found.Defs = append(found.Defs, definition{
				Assigned: def.Name,
				Operator: def.Assigner,
				Value:    value(def.Value),
				Line:     def.NamePos.Line,
			})
		case *parser.Module:
			found.Defs = append(found.Defs, definition{
				Module:     def.Type,
				Line:       def.TypePos.Line,
				Properties: properties(def.Properties, wanted),
			})
		}
	}
	return found
}

// parse calls parser.Parse, which took a scope as its third argument until 2024; without evaluation it
// may be nil.
func parse(name string, file io.Reader) (parsed *parser.File, errs []error) {
	function := reflect.ValueOf(parser.Parse)
	arguments := []reflect.Value{reflect.ValueOf(name), reflect.ValueOf(file)}
	if function.Type().NumIn() == 3 {
		arguments = append(arguments, reflect.Zero(function.Type().In(2)))
	}
	results := function.Call(arguments)
	return results[0].Interface().(*parser.File), results[1].Interface().([]error)
}

func properties(all []*parser.Property, wanted map[string]bool) [][2]any {
	pairs := [][2]any{}
	for _, property := range all {
		if wanted == nil || wanted[property.Name] {
			pairs = append(pairs, [2]any{property.Name, value(property.Value)})
		}
	}
	return pairs
}

func value(expression any) any {
	switch x := expression.(type) {
	case *parser.String:
		return x.Value
	case *parser.Bool:
		return x.Value
	case *parser.Int64:
		return x.Value
	case *parser.List:
		values := []any{}
		for _, each := range x.Values {
			values = append(values, value(each))
		}
		return values
	case *parser.Map:
		return map[string]any{"map": properties(x.Properties, nil)}
	case *parser.Variable:
		return map[string]any{"variable": x.Name}
	case *parser.Operator:
		return map[string]any{"sum": []any{value(x.Args[0]), value(x.Args[1])}}
	}
	return newer(expression)
}

// newer handles what the parsers before 2024 do not have: select() and unset.
func newer(expression any) any {
	x := reflect.Indirect(reflect.ValueOf(expression))
	switch x.Type().Name() {
	case "Select":
		values := []any{}
		for i := 0; i < x.FieldByName("Cases").Len(); i++ {
			branch := x.FieldByName("Cases").Index(i).Elem()
			values = append(values, value(branch.FieldByName("Value").Interface()))
		}
		return map[string]any{"select": values}
	case "UnsetProperty":
		return nil
	}
	return map[string]any{"unknown": fmt.Sprintf("%T", expression)}
}
