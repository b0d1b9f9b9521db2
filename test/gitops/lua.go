package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	lua "github.com/yuin/gopher-lua"
	service "inlay.dev/inlay/test/go-service"
	luajson "layeh.com/gopher-json"
)

// Runs a script as Argo CD does: the object is the global `obj`, and the answer is the returned table. Only the libraries package, base
// and table are open, and `require("os")` has time and date alone.
func init() {
	operations["lua"] = runLua
}

const luaTimeout = time.Second

func runLua(input json.RawMessage) (any, error) {
	var asked struct {
		Script string `json:"script"`
		Object any    `json:"object"`
	}
	if err := service.Decode(input, &asked); err != nil {
		return nil, err
	}
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	libraries := []struct {
		name string
		open lua.LGFunction
	}{
		{lua.LoadLibName, lua.OpenPackage},
		{lua.BaseLibName, lua.OpenBase},
		{lua.TabLibName, lua.OpenTable},
	}
	for _, each := range libraries {
		call := lua.P{Fn: state.NewFunction(each.open), NRet: 0, Protect: true}
		if err := state.CallByParam(call, lua.LString(each.name)); err != nil {
			return nil, err
		}
	}
	state.PreloadModule(lua.OsLibName, loadClock)
	ctx, cancel := context.WithTimeout(context.Background(), luaTimeout)
	defer cancel()
	state.SetContext(ctx)
	state.SetGlobal("obj", toLua(state, asked.Object))
	if err := state.DoString(asked.Script); err != nil {
		return nil, err
	}
	returned := state.Get(-1)
	if returned.Type() != lua.LTTable {
		return nil, fmt.Errorf("the script returned %s, not a table", returned.Type())
	}
	text, err := luajson.Encode(returned)
	if err != nil {
		return nil, err
	}
	return json.RawMessage(text), nil
}

// loadClock is the part of Lua's library os that Argo CD permits, with gopher-lua's own functions.
func loadClock(state *lua.LState) int {
	full := lua.NewState(lua.Options{SkipOpenLibs: true})
	lua.OpenOs(full)
	whole := full.GetGlobal(lua.OsLibName).(*lua.LTable)
	clock := state.NewTable()
	for _, name := range []string{"time", "date"} {
		function := whole.RawGetString(name).(*lua.LFunction).GFunction
		state.SetField(clock, name, state.NewFunction(function))
	}
	state.Push(clock)
	return 1
}

// toLua converts JSON as Argo CD does. Numbers of objects of the cluster are Lua numbers.
func toLua(state *lua.LState, value any) lua.LValue {
	switch given := value.(type) {
	case bool:
		return lua.LBool(given)
	case string:
		return lua.LString(given)
	case json.Number:
		number, err := given.Float64()
		if err != nil {
			return lua.LNil
		}
		return lua.LNumber(number)
	case []any:
		list := state.CreateTable(len(given), 0)
		for _, each := range given {
			list.Append(toLua(state, each))
		}
		return list
	case map[string]any:
		table := state.CreateTable(0, len(given))
		for key, each := range given {
			table.RawSetString(key, toLua(state, each))
		}
		return table
	default:
		return lua.LNil
	}
}
